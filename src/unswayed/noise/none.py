"""No synthetic noise: the given labels are taken as they come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.noise import Labels, Noise, register
from unswayed.randomness import Bits


@register("none")
class NoNoise(Noise):
    """Leave the labels of the data set as they are."""

    convention = "labels are used as the data set gives them"
    fixed = True

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes

    def matrix(self) -> NDArray[np.float64]:
        """Return the identity."""
        return np.eye(self.num_classes)

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return a copy."""
        return labels.copy()
