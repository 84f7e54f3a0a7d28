"""The view that the label loss and the pair selection see: crop and flip."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.types import Fraction, Positive, PositiveFraction
from unswayed.views import View, register
from unswayed.views.crops import BOX_DRAWS, random_boxes
from unswayed.views.operations import padded_crop, resized_crop


@register("weak", paper="Yi et al., CVPR 2022, sec. 4")
class Weak(View):
    """Random crop and horizontal flip."""

    draws = BOX_DRAWS + 1

    def __init__(
        self,
        crop: Literal["resized", "pad"] = "resized",
        area: tuple[PositiveFraction, PositiveFraction] = (0.08, 1.0),
        ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3),
        padding: Annotated[int, Ge(0)] = 4,
        edge: Literal["black", "reflect"] = "black",
        flip: Fraction | Literal["alternate"] = 0.5,
        image_size: tuple[int, int] | None = None,
    ) -> None:
        """Store the options.

        Args:
            crop: a random resized crop, as in the published code, or pad-and-crop, as in most of
                the literature.
            area: share of the area that a resized crop keeps.
            ratio: width / height of a resized crop.
            padding: pixels added on each side before a pad-and-crop.
            edge: whether added pixels are black, or mirror the image at its edge.
            flip: probability of mirroring; 0 where left and right matter, as in digits. "alternate"
                mirrors an image in every other epoch, so that no two successive ones show the same
                side (Jordan, arXiv 2404.00498).
            image_size: (H, W) of the images, if known: padding must leave something to reflect.
        """
        if crop == "pad" and edge == "reflect" and image_size and padding >= min(image_size):
            raise UsageError(
                f"padding is {padding}, but images of {image_size[0]}×{image_size[1]} pixels have "
                f"only {min(image_size) - 1} to reflect on each side; choose less, or edge=black"
            )
        self.crop, self.area, self.ratio = crop, area, ratio
        self.padding, self.edge = padding, edge
        self.alternating = flip == "alternate"
        self.flip = 0.5 if flip == "alternate" else flip

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return (B, C, H, W)."""
        flip = u[:, 0] < self.flip
        if self.crop == "resized":
            size = (x.shape[2], x.shape[3])
            return resized_crop(x, *random_boxes(u[:, 1:], size, self.area, self.ratio), flip=flip)
        offset = (u[:, 1:3] * (2 * self.padding + 1)).long()
        return padded_crop(x, self.padding, offset[:, 0], offset[:, 1], flip, self.edge)
