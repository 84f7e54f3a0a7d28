"""No augmentation."""

from __future__ import annotations

from torch import Tensor

from unswayed.views import View, register


@register("none")
class Identity(View):
    """The image as it is."""

    draws = 0

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the batch itself."""
        return x
