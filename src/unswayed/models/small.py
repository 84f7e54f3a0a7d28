"""A small network for CPUs, small images and tests."""

from __future__ import annotations

import itertools

import torch.nn.functional as F
from torch import Tensor, nn

from unswayed.models import Backbone, register
from unswayed.models.preact_resnet import initialise
from unswayed.types import Count


@register("small")
class SmallNet(Backbone):
    """Four 3×3 convolutions with batch norm, pooled after the first, the third and the last."""

    def __init__(self, in_channels: int, width: Count = 32) -> None:
        """Build the layers.

        Args:
            in_channels: C.
            width: channels of the first layer; the last has four times as many.
        """
        super().__init__()
        self.feature_dim = 4 * width
        widths = (in_channels, width, 2 * width, 2 * width, 4 * width)
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in itertools.pairwise(widths)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 4 · width)."""
        for layer, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = F.relu(norm(conv(x)))
            if layer in (0, 2) and min(x.shape[-2:]) >= 2:
                x = F.max_pool2d(x, 2)
        return x.mean(dim=(2, 3))
