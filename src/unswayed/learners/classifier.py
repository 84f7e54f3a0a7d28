"""The network that is shipped: normalisation, backbone and one linear layer, or several of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unswayed.models import Backbone
from unswayed.processes import whole
from unswayed.regularizers.pairs import single


class Network(nn.Module, ABC):
    """Images with values in [0, 1], or uint8, in; logits (B, K) out."""

    @property
    @abstractmethod
    def parts(self) -> list[Classifier]:
        """The classifiers it is made of."""

    @torch.no_grad()
    def predict_proba(self, images: Tensor) -> Tensor:
        """Return class probabilities (B, K), in evaluation mode."""
        was_training = self.training
        self.eval()
        p = self(images).softmax(dim=1)
        self.train(was_training)
        return torch.as_tensor(p)


class Classifier(Network):
    """A backbone and a linear head; normalisation is part of the weights."""

    mean: Tensor
    std: Tensor

    def __init__(
        self, backbone: Backbone, num_classes: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.feature_dim, num_classes)
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).clamp_min(1e-6).view(-1, 1, 1))

    @property
    def parts(self) -> list[Classifier]:
        """Return itself."""
        return [self]

    def normalize(self, images: Tensor) -> Tensor:
        """Return images (B, C, H, W) with the training set's mean 0 and standard deviation 1.

        Channels come last in memory from here on, which convolutions on a CPU like best.
        """
        return (images.contiguous(memory_format=torch.channels_last) - self.mean) / self.std

    def features(self, images: Tensor) -> Tensor:
        """Return what the linear layer sees, (B, F), of images as `forward` takes them."""
        if images.dtype == torch.uint8:
            images = images.to(self.mean.dtype) / 255
        features: Tensor = self.backbone(self.normalize(images))
        return features

    def head_of(self, features: Tensor) -> Tensor:
        """Return logits (B, K) of features (B, F).

        They have single precision even under autocast: losses need it near p = 0 and p = 1. Where
        several processes share a batch, they come back for all its rows.
        """
        return whole(single(self.head(features)))

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, K) of float images in [0, 1], or of uint8 images."""
        return self.head_of(self.features(images))


class Ensemble(Network):
    """Classifiers whose logits are averaged: what methods with two networks ship."""

    def __init__(self, members: Sequence[Classifier]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def parts(self) -> list[Classifier]:
        """Return the members."""
        return [member for member in self.members if isinstance(member, Classifier)]

    def forward(self, images: Tensor) -> Tensor:
        """Return the mean of the members' logits (B, K)."""
        return torch.stack([member(images) for member in self.members]).mean(dim=0)
