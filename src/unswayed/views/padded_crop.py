"""A shift by a few pixels, and a flip."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from unswayed.device import sent
from unswayed.errors import UsageError
from unswayed.types import Whole
from unswayed.views import operations, register
from unswayed.views.crops import Crop, Flip


@register("padded_crop")
class PaddedCrop(Crop):
    """Pad, crop at random and flip, as in most of the literature."""

    draws = 3

    def __init__(
        self,
        padding: Whole = 4,
        edge: Literal["black", "reflect"] = "black",
        flip: Flip = 0.5,
        image_size: tuple[int, int] | None = None,
    ) -> None:
        """Store the options.

        Args:
            padding: pixels added on each side before the crop.
            edge: whether added pixels are black, or mirror the image at its edge.
            flip: probability of mirroring; 0 where left and right matter, as in digits. "alternate"
                mirrors an image in every other epoch, so that no two successive ones show the same
                side (Jordan, arXiv 2404.00498).
            image_size: (H, W) of the images, if known: padding must leave something to reflect.
        """
        super().__init__(flip)
        if edge == "reflect" and image_size and padding >= min(image_size):
            raise UsageError(
                f"padding is {padding}, but images of {image_size[0]}×{image_size[1]} pixels have "
                f"only {min(image_size) - 1} to reflect on each side; choose less, or edge=black"
            )
        self.padding, self.edge = padding, edge

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return (B, C, H, W)."""
        u = sent(u, x.device)
        top, left = (u[:, 1:3] * (2 * self.padding + 1)).long().unbind(1)
        flip = u[:, 0] < self.flip
        return operations.padded_crop(x, self.padding, top, left, flip, self.edge)
