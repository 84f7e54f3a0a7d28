"""A box of random size and place, enlarged to the whole, and a flip."""

from __future__ import annotations

from torch import Tensor

from unswayed.device import sent
from unswayed.types import Positive, PositiveFraction
from unswayed.views import operations, register
from unswayed.views.crops import BOX_DRAWS, Crop, Flip, random_boxes


@register("resized_crop", paper="Yi et al., CVPR 2022, sec. 4")
class ResizedCrop(Crop):
    """Random resized crop and horizontal flip, as in the published code."""

    draws = 1 + BOX_DRAWS

    def __init__(
        self,
        area: tuple[PositiveFraction, PositiveFraction] = (0.08, 1.0),
        ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3),
        flip: Flip = 0.5,
    ) -> None:
        """Store the options.

        Args:
            area: share of the area that the crop keeps.
            ratio: width / height of the crop.
            flip: probability of mirroring; 0 where left and right matter, as in digits. "alternate"
                mirrors an image in every other epoch, so that no two successive ones show the same
                side (Jordan, arXiv 2404.00498).
        """
        super().__init__(flip)
        self.area, self.ratio = area, ratio

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return (B, C, H, W)."""
        u = sent(u, x.device)
        boxes = random_boxes(u[:, 1:], (x.shape[2], x.shape[3]), self.area, self.ratio)
        return operations.resized_crop(x, *boxes, flip=u[:, 0] < self.flip)
