"""The views that the contrastive term sees. Chen et al., ICML 2020, appendix A."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.types import Fraction, NonNegative, Positive, PositiveFraction
from unswayed.views import View, register
from unswayed.views import operations as ops
from unswayed.views.crops import BOX_DRAWS, random_boxes


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
        grayscale: Fraction = 0.2,
        blur: Fraction = 0.0,
        blur_sigma: tuple[Positive, Positive] = (0.1, 2.0),
        blur_kernel: Annotated[int, Ge(0)] = 0,
    ) -> None:
        """Store the options.

        Args:
            area: share of the area that the crop keeps.
            ratio: width / height of the crop.
            flip: probability of mirroring; 0 where left and right matter, as in digits.
            jitter: strength of brightness, contrast, saturation and hue, in a random order.
            jitter_probability: probability of any jitter.
            grayscale: probability of losing all colour.
            blur: probability of a Gaussian blur; the paper names it, its code leaves it out.
            blur_sigma: smallest and largest width of the blur in pixels.
            blur_kernel: odd side of the blur's window; 0 takes a tenth of the image, at least 3.
        """
        if blur_kernel and blur_kernel % 2 == 0:
            raise UsageError(f"views.strong.blur_kernel must be odd, not {blur_kernel}")
        self.area, self.ratio, self.flip = area, ratio, flip
        self.jitter, self.jitter_probability = jitter, jitter_probability
        self.grayscale = grayscale
        self.blur, self.blur_sigma, self.blur_kernel = blur, blur_sigma, blur_kernel

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return (B, C, H, W)."""
        size = (x.shape[2], x.shape[3])
        boxes = random_boxes(u[:, 13:], size, self.area, self.ratio)
        x = ops.resized_crop(x, *boxes, flip=u[:, 0] < self.flip)
        self._jitter(x, u[:, 1] < self.jitter_probability, u[:, 2:6], u[:, 6:10])
        gray = (u[:, 10] < self.grayscale).nonzero().squeeze(1)
        x[gray] = ops.grayscale(x[gray])
        self._blur(x, (u[:, 11] < self.blur).nonzero().squeeze(1), u[:, 12])
        return x

    def _blur(self, x: Tensor, rows: Tensor, width: Tensor) -> None:
        if len(rows) == 0:
            return
        low, high = self.blur_sigma
        sigma = low + (high - low) * width[rows]
        side = min(x.shape[2:])
        kernel = self.blur_kernel or max(3, round(side / 10) // 2 * 2 + 1)
        kernel = min(kernel, 2 * side - 1)  # an edge can be reflected no further
        x[rows] = ops.gaussian_blur(x[rows], sigma, kernel)

    def _jitter(self, x: Tensor, chosen: Tensor, order: Tensor, strength: Tensor) -> None:
        """Adjust the chosen images in place, each in an order of its own."""
        operations = (
            ops.adjust_brightness,
            ops.adjust_contrast,
            ops.adjust_saturation,
            ops.adjust_hue,
        )
        turn = order.argsort(dim=1)  # (B, 4): which operation comes first, second, ...
        for place in range(4):
            for number, operation in enumerate(operations):
                span = self.jitter[number]
                if span == 0:
                    continue
                middle = 0.0 if operation is ops.adjust_hue else 1.0
                low = max(0.0, 1 - span) if middle else -span
                factor = low + (middle + span - low) * strength[:, number]
                rows = (chosen & (turn[:, place] == number)).nonzero().squeeze(1)
                x[rows] = operation(x[rows], factor[rows])
