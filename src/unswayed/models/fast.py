"""A network that learns small images in few epochs. After Jordan, arXiv 2404.00498."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unswayed.models import Backbone, register
from unswayed.types import Count

PATCH = 2
SAMPLE, PIXELS = 5000, 2**23
"""From how many images at most the first layer is computed, and how many pixels they may have."""

EPS = 5e-4
"""Added to the variance of a whitened direction, so that noise in flat patches is not blown up."""

SHRINK = 9
"""Features are divided by this, which slows the linear layer on top in a fast training."""


@register("fast", paper="Jordan, arXiv 2404.00498")
class FastNet(Backbone):
    """A frozen whitening layer and three pairs of 3×3 convolutions that begin as identities."""

    def __init__(
        self,
        in_channels: int,
        images: Tensor | None = None,
        width: Count = 64,
        whiten: bool = True,
        identity: bool = True,
        mirror: bool = False,
    ) -> None:
        """Build the layers.

        Args:
            in_channels: C.
            images: (N, C, H, W) uint8 that are trained on; without them, weights must be loaded.
            width: channels of the first pair; the others have four times as many.
            whiten: compute the first layer from the images and freeze it; otherwise it is learnt.
            identity: let the first outputs of a convolution begin as copies of its inputs.
            mirror: outside training, average the features of an image and of its mirror image,
                which is the average of their logits. Not for images where left and right matter.
        """
        super().__init__()
        self.feature_dim, self.mirror = 4 * width, mirror
        directions = 2 * in_channels * PATCH**2
        # Without a bias nothing is left to learn once it is frozen, so that no gradient has to go
        # through the layer with the most pixels: a sixth of a step at width 16.
        self.first = nn.Conv2d(in_channels, directions, PATCH, bias=False)
        self.first.weight.requires_grad_(not whiten)
        widths = (directions, width, 4 * width, 4 * width)
        self.pairs = nn.ModuleList(_Pair(a, b, identity) for a, b in itertools.pairwise(widths))
        if whiten and images is not None:
            most = max(1, PIXELS // (images.shape[2] * images.shape[3]))
            rows = torch.linspace(0, len(images) - 1, min(SAMPLE, most, len(images))).long()
            self.first.weight.copy_(whitening(images[rows].float() / 255))

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 4 · width)."""
        if self.training or not self.mirror:
            return self._features(x)
        return (self._features(x) + self._features(x.flip(3))) / 2

    def _features(self, x: Tensor) -> Tensor:
        x = _gelu(self.first(x))
        for pair in self.pairs:
            x = pair(x)
        # Not amax, whose gradient looks for the maximum again: compiled in bf16 it finds none.
        return F.max_pool2d(x, x.shape[2:]).flatten(1) / SHRINK


class _Pair(nn.Module):
    """Two convolutions; the first one's output is pooled."""

    def __init__(self, in_channels: int, out_channels: int, identity: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        if identity:
            for conv in (self.first, self.second):
                nn.init.dirac_(conv.weight[: min(conv.weight.shape[:2])])
        self.norms = nn.ModuleList(_norm(out_channels) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if min(height, width) >= 2:
            # Pooling drops the last row or column of an odd map, so it is not computed: a tenth of
            # all operations at 32 pixels.
            x = F.pad(x, (1, 1 - width % 2, 1, 1 - height % 2))
            x = F.max_pool2d(F.conv2d(x, self.first.weight), 2)
        else:
            x = self.first(x)
        x = _gelu(self.norms[0](x))
        return _gelu(self.norms[1](self.second(x)))


def _gelu(x: Tensor) -> Tensor:
    """Return GELU, on the order that memory has: PyTorch takes twice as long channels last."""
    if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return F.gelu(x)
    return F.gelu(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def _norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch norm that shifts but does not scale, and whose statistics move quickly."""
    norm = nn.BatchNorm2d(channels, momentum=0.4)
    norm.weight.requires_grad_(False)
    return norm


def whitening(images: Tensor) -> Tensor:
    """Return filters, (2 · 4C, C, 2, 2), whose outputs on 2×2 patches are uncorrelated.

    They are the eigenvectors of the patches' second moments, scaled to unit variance, and the
    negatives of these: the activation that follows then keeps both signs.

    Args:
        images: (n, C, H, W); each channel is brought to mean 0 and standard deviation 1 first.
    """
    channels = images.shape[1]
    std, mean = torch.std_mean(images, dim=(0, 2, 3), keepdim=True)
    images = (images - mean) / std.clamp_min(1e-6)
    patches = F.unfold(images, PATCH).transpose(1, 2).flatten(0, 1)  # (patches, 4C)
    variances, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    scaled = vectors.T / (variances.clamp_min(0) + EPS).sqrt()[:, None]
    filters = scaled.flip(0).view(-1, channels, PATCH, PATCH)
    return torch.cat([filters, -filters])
