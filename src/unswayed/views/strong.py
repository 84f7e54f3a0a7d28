"""The views that the contrastive term sees. Chen et al., ICML 2020, appendix A."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Le
from torch import Tensor

from unswayed.device import sent
from unswayed.errors import UsageError
from unswayed.types import Count, Fraction, NonNegative, Positive, PositiveFraction
from unswayed.views import View, register
from unswayed.views import operations as ops
from unswayed.views.crops import BOX_DRAWS, random_boxes

ADJUSTMENTS = (
    (ops.adjust_brightness_, 1.0),
    (ops.adjust_contrast_, 1.0),
    (ops.adjust_saturation_, 1.0),
    (ops.adjust_hue_, 0.0),
)
"""What the jitter does, and the factor that changes nothing."""

NONE, CONTRAST = -1, 1


@register("strong", paper="Chen et al., ICML 2020; Yi et al., CVPR 2022, sec. 4")
class Strong(View):
    """Random resized crop, flip, colour jitter with hue, grayscale and Gaussian blur."""

    draws = BOX_DRAWS + 13

    def __init__(
        self,
        area: tuple[PositiveFraction, PositiveFraction] = (0.2, 1.0),
        ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3),
        flip: Fraction = 0.5,
        jitter: tuple[NonNegative, NonNegative, NonNegative, Annotated[float, Ge(0), Le(0.5)]] = (
            0.4,
            0.4,
            0.4,
            0.1,
        ),
        jitter_probability: Fraction = 0.8,
        colour: Literal["exact", "affine"] = "exact",
        grayscale: Fraction = 0.2,
        blur: Fraction = 0.0,
        blur_sigma: tuple[Positive, Positive] | None = None,
        blur_kernel: Count | None = None,
    ) -> None:
        """Store the options.

        Args:
            area: share of the area that the crop keeps.
            ratio: width / height of the crop.
            flip: probability of mirroring; 0 where left and right matter, as in digits.
            jitter: strength of brightness, contrast, saturation and hue, in a random order.
            jitter_probability: probability of any jitter.
            colour: "exact" is torchvision's jitter in order and clamping; "affine" folds jitter and
                grayscale into one 3×3 matrix and an offset for each image, several times as fast:
                the hue turns around the gray axis, and values are clamped once, at the end.
            grayscale: probability of losing all colour.
            blur: probability of a Gaussian blur; the paper names it, its code leaves it out.
            blur_sigma: smallest and largest width of the blur in pixels; 0.1 and 2 if not given.
            blur_kernel: odd side of the blur's window; a tenth of the image, at least 3, if not
                given.
        """
        if blur_kernel and blur_kernel % 2 == 0:
            raise UsageError(f"views.strong.blur_kernel must be odd, not {blur_kernel}")
        for option, value in (("blur_sigma", blur_sigma), ("blur_kernel", blur_kernel)):
            if value is not None and not blur:
                raise UsageError(f"views.strong.{option}: nothing is blurred; set blur above 0")
        self.area, self.ratio, self.flip = area, ratio, flip
        self.jitter, self.jitter_probability = jitter, jitter_probability
        self.colour, self.grayscale = colour, grayscale
        self.blur, self.blur_sigma = blur, blur_sigma or (0.1, 2.0)
        self.blur_kernel = blur_kernel

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return (B, C, H, W)."""
        size = (x.shape[2], x.shape[3])
        there = sent(u, x.device)
        boxes = random_boxes(there[:, 13:], size, self.area, self.ratio)
        x = ops.resized_crop(x, *boxes, flip=there[:, 0] < self.flip)
        if self.colour == "affine" and x.shape[1] == 3:
            gray = there[:, 10] < self.grayscale
            x = self._recolour(x, self._turns(there), there[:, 6:10], gray)
        else:
            self._jitter(x, self._turns(u), there[:, 6:10])
            rows = _where(u[:, 10] < self.grayscale, x)
            x[rows] = ops.grayscale(x[rows])
        if self.blur:
            self._blur(x, _where(u[:, 11] < self.blur, x), there[:, 12])
        return x

    def kinds(self, u: Tensor) -> Tensor:
        """Return a number for each order of adjustments; close orders begin alike."""
        if self.colour == "affine":
            return super().kinds(u)
        first, second, third, fourth = self._turns(u).unbind(1)
        return 64 * first + 16 * second + 4 * third + fourth

    def _turns(self, u: Tensor) -> Tensor:
        """Return which adjustment comes first, second, ..., (B, 4); `NONE` where there is none."""
        return torch.where(u[:, 1:2] < self.jitter_probability, u[:, 2:6].argsort(dim=1), NONE)

    def _blur(self, x: Tensor, rows: Tensor, width: Tensor) -> None:
        if len(rows) == 0:
            return
        low, high = self.blur_sigma
        sigma = low + (high - low) * width[rows]
        side = min(x.shape[2:])
        kernel = self.blur_kernel or max(3, round(side / 10) // 2 * 2 + 1)
        kernel = min(kernel, 2 * side - 1)  # an edge can be reflected no further
        x[rows] = ops.gaussian_blur(x[rows], sigma, kernel)

    def _factors(self, number: int, strength: Tensor) -> Tensor:
        """Return the factor of an adjustment for each image, (B,)."""
        middle, span = ADJUSTMENTS[number][1], self.jitter[number]
        low = max(0.0, 1 - span) if middle else -span
        return low + (middle + span - low) * strength[:, number]

    def _recolour(self, x: Tensor, turns: Tensor, strength: Tensor, gray: Tensor) -> Tensor:
        """Return images after all adjustments at once, each image's in an order of its own."""
        factors = [self._factors(number, strength) for number in range(4)]
        maps = ops.colour_maps(*factors)  # (B, 5, 3, 3), the last one changes nothing
        sample = torch.arange(len(x), device=x.device)
        matrix, offset = maps[:, 4], x.new_zeros(len(x), 3, 1)
        mean = x.mean(dim=(2, 3))[:, :, None]  # (B, 3, 1)
        for turn in turns.T:  # (B,); `NONE` is the last
            brightness = ops.grayscale((matrix @ mean + offset)[..., None])[..., 0]  # (B, 1, 1)
            blend = torch.where(turn == CONTRAST, 1 - factors[CONTRAST], 0.0)[:, None, None]
            step = maps[sample, turn]
            matrix, offset = step @ matrix, step @ offset + blend * brightness
        luma = ops.constants(ops.LUMA, x).expand(3, 3)
        chosen = torch.where(gray[:, None, None], luma, maps[0, 4])
        matrix, offset = chosen @ matrix, chosen @ offset
        seen = torch.baddbmm(offset, matrix, x.flatten(2)).clamp_(0, 1)
        return seen.view_as(x)

    def _jitter(self, x: Tensor, turns: Tensor, strength: Tensor) -> None:
        """Adjust images in place, each in an order of its own."""
        for turn in turns.T.numpy():  # (B,)
            for number in set(turn.tolist()) - {NONE}:
                operation, _ = ADJUSTMENTS[number]
                if self.jitter[number] == 0:
                    continue
                factor = self._factors(number, strength)
                rows = np.flatnonzero(turn == number)
                if rows[-1] - rows[0] < len(rows):  # neighbours stay where they are
                    part = slice(rows[0], rows[-1] + 1)
                    operation(x[part], factor[part])
                else:
                    some = sent(torch.from_numpy(rows), x.device)
                    x[some] = operation(x[some], factor[some])


def _where(chosen: Tensor, x: Tensor) -> Tensor:
    """Return the rows that are chosen on the CPU, where the images are."""
    return sent(chosen.nonzero().squeeze(1), x.device)
