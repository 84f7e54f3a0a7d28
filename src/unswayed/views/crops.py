"""Where a view looks: boxes drawn as torchvision's RandomResizedCrop draws them, and flips."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unswayed.types import Fraction
from unswayed.views import View

Flip = Fraction | Literal["alternate"]
TRIES = 10
BOX_DRAWS = 2 * TRIES + 2


class Boxes(NamedTuple):
    """Boxes with whole numbers in floating-point tensors (B,), one per image."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


class Crop(View):
    """A view that crops and mirrors; its first draw decides whether an image is mirrored."""

    def __init__(self, flip: Flip) -> None:
        self.alternating = flip == "alternate"
        self.flip = 0.5 if flip == "alternate" else flip


def random_boxes(
    u: Tensor,
    image_size: tuple[int, int],
    area: tuple[float, float],
    ratio: tuple[float, float],
) -> Boxes:
    """Draw boxes of a random share of the area and a log-uniform aspect ratio.

    Of ten proposals the first that fits is taken; if none does, the largest central box whose
    ratio is allowed.

    Args:
        u: (B, BOX_DRAWS) in [0, 1).
        image_size: (H, W).
        area: smallest and largest share of the image's area.
        ratio: smallest and largest width / height.
    """
    height, width = image_size
    share = area[0] + (area[1] - area[0]) * u[:, :TRIES]
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = torch.exp(low + (high - low) * u[:, TRIES : 2 * TRIES])
    w = torch.sqrt(share * height * width * aspect).round()
    h = torch.sqrt(share * height * width / aspect).round()
    fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)  # (B, TRIES)
    first = fits.to(torch.uint8).argmax(dim=1, keepdim=True)
    central_h, central_w = _central(height, width, ratio)
    none = ~fits.any(dim=1)
    h = torch.where(none, central_h, h.gather(1, first).squeeze(1))
    w = torch.where(none, central_w, w.gather(1, first).squeeze(1))
    top = torch.where(none, (height - h).div(2, rounding_mode="floor"), u[:, -2] * (height - h + 1))
    left = torch.where(none, (width - w).div(2, rounding_mode="floor"), u[:, -1] * (width - w + 1))
    return Boxes(top.floor(), left.floor(), h, w)


def _central(height: int, width: int, ratio: tuple[float, float]) -> tuple[int, int]:
    if width / height < ratio[0]:
        return round(width / ratio[0]), width
    if width / height > ratio[1]:
        return height, round(height * ratio[1])
    return height, width
