"""Symmetric noise, in the two conventions that the literature calls by one name.

`inclusive=False`: a selected label becomes one of the K-1 *other* classes (Co-teaching, SLN, SL,
APL), so the rate is the share of wrong labels. `inclusive=True`: it is redrawn from *all* K
classes (CTRR's published code, DivideMix, ELR), so only rate·(K-1)/K of the labels are wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, official, register
from unswayed.noise.selection import WORDS, Draw, select
from unswayed.randomness import Bits, uniform
from unswayed.types import Fraction


@register("symmetric", paper="van Rooyen et al., NeurIPS 2015")
class Symmetric(Noise):
    """Replace a share of the labels by classes drawn uniformly."""

    def __init__(
        self,
        num_classes: int,
        rate: Fraction = 0.4,
        inclusive: bool = False,
        draw: Draw = "exact",
        official_seed: str | None = None,
    ) -> None:
        """Store the convention.

        Args:
            num_classes: K.
            rate: share of samples that are selected.
            inclusive: draw from all classes, the true one among them.
            draw: "exact" selects int(rate·N) of all samples, "per_class" int(rate·n) of each class,
                "bernoulli" each with probability `rate`.
            official_seed: draw as CTRR's published code does when given this seed, by position;
                needs inclusive=true and draw="exact".
        """
        if num_classes < 2:
            raise UsageError("symmetric noise needs at least two classes")
        if official_seed is not None and (not inclusive or draw != "exact"):
            raise UsageError(
                "noise.official_seed: the published generator draws from all classes, for an exact "
                'share of all samples; it needs noise.inclusive=true and noise.draw="exact"'
            )
        self.num_classes, self.rate, self.inclusive = num_classes, rate, inclusive
        self.draw, self.official_seed = draw, official_seed
        self.by_position = self.fixed = official_seed is not None
        self.convention = (
            f"{WORDS[draw].format(rate=rate)} get a label drawn uniformly from "
            f"{'all classes' if inclusive else 'the other classes'}{official.words(official_seed)}"
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the expected transition matrix."""
        k, r = self.num_classes, self.rate
        if self.inclusive:
            return np.full((k, k), r / k) + (1 - r) * np.eye(k)
        return np.full((k, k), r / (k - 1)) + (1 - r - r / (k - 1)) * np.eye(k)

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels, drawn by sample; by row where the official seed is set."""
        if self.official_seed is not None:
            drawn = official.drawn(self.official_seed, len(labels), self.rate, self.num_classes)
            return np.where(drawn < 0, labels, drawn)
        selected = select(self.draw, labels, keys, self.rate, seed)
        draw = uniform(seed, "noise/label", keys[selected])
        given = labels.copy()
        if self.inclusive:
            given[selected] = (draw * self.num_classes).astype(np.int64)
        else:
            shift = 1 + (draw * (self.num_classes - 1)).astype(np.int64)
            given[selected] = (labels[selected] + shift) % self.num_classes
        return given
