"""Backbones: images in, one feature vector each out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from unswayed.registry import Registry


class Backbone(nn.Module, ABC):
    """A network that ends in a feature vector; the classifier on top is one linear layer."""

    feature_dim: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, F) of normalised images (B, C, H, W)."""


MODELS: Registry[Backbone] = Registry("model", __name__)
register = MODELS.register
