"""Symmetric noise, in the two conventions that the literature calls by one name.

`inclusive=False`: a selected label becomes one of the K-1 *other* classes (Co-teaching, SLN, SL,
APL), so the rate is the share of wrong labels. `inclusive=True`: it is redrawn from *all* K
classes (CTRR's published code, DivideMix, ELR), so only rate·(K-1)/K of the labels are wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, register
from unswayed.randomness import Bits, permutation, uniform
from unswayed.types import Fraction


@register("symmetric", paper="van Rooyen et al., NeurIPS 2015")
class Symmetric(Noise):
    """Replace a share of the labels by classes drawn uniformly."""

    def __init__(
        self,
        num_classes: int,
        rate: Fraction = 0.4,
        inclusive: bool = False,
        exact: bool = True,
    ) -> None:
        """Store the convention.

        Args:
            num_classes: K.
            rate: share of samples that are selected.
            inclusive: draw from all classes, the true one among them.
            exact: select exactly int(rate·N) samples instead of each with probability `rate`.
        """
        if num_classes < 2:
            raise UsageError("symmetric noise needs at least two classes")
        self.num_classes, self.rate, self.inclusive, self.exact = (
            num_classes,
            rate,
            inclusive,
            exact,
        )
        self.convention = (
            f"{'exactly' if exact else 'each with probability'} {rate:g} of the samples get a "
            f"label drawn uniformly from {'all classes' if inclusive else 'the other classes'}"
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the expected transition matrix."""
        k, r = self.num_classes, self.rate
        if self.inclusive:
            return np.full((k, k), r / k) + (1 - r) * np.eye(k)
        return np.full((k, k), r / (k - 1)) + (1 - r - r / (k - 1)) * np.eye(k)

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels, drawn by sample."""
        if self.exact:
            selected = permutation(seed, "noise/select", keys)[: int(self.rate * len(labels))]
        else:
            selected = np.flatnonzero(uniform(seed, "noise/select", keys) < self.rate)
        draw = uniform(seed, "noise/label", keys[selected])
        given = labels.copy()
        if self.inclusive:
            given[selected] = (draw * self.num_classes).astype(np.int64)
        else:
            shift = 1 + (draw * (self.num_classes - 1)).astype(np.int64)
            given[selected] = (labels[selected] + shift) % self.num_classes
        return given
