"""Asymmetric noise: a class is mistaken for one other class, its look-alike.

The literature differs in the map from class to look-alike, and in what the rate counts: CTRR's
published code selects a share of *all* samples and then applies the map, others a share of every
class or each sample by a coin. The map of CIFAR-10 moves five classes only, so that 40 % noise
makes 20 % of the labels wrong.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, official, register
from unswayed.noise.selection import WORDS, Draw, select
from unswayed.noise.superclasses import CIFAR100
from unswayed.randomness import Bits
from unswayed.types import Fraction

Map = Literal["cifar10", "next", "next_in_superclass", "next_in_five"]

CIFAR10 = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}
"""Truck to automobile, bird to airplane, deer to horse, cat and dog to each other (Patrini et al.,
CVPR 2017)."""

MEANING: dict[Map, str] = {
    "cifar10": "the look-alike of their class, which five of CIFAR-10's classes have",
    "next": "the next class, from the last to the first",
    "next_in_superclass": "the next class of their CIFAR-100 super-class",
    "next_in_five": "the next class of their group of five consecutive ones",
}


@register("asymmetric", paper="Patrini et al., CVPR 2017")
class Asymmetric(Noise):
    """Move a share of the labels to the one class that theirs is mistaken for."""

    def __init__(
        self,
        num_classes: int,
        map: Map = "next",
        rate: Fraction = 0.4,
        draw: Draw = "exact",
        official_seed: str | None = None,
    ) -> None:
        """Store the convention.

        Args:
            num_classes: K.
            map: what a class becomes: "cifar10" (five classes to their look-alikes), "next",
                "next_in_superclass" (CIFAR-100) or "next_in_five" (groups of consecutive ids).
            rate: share of samples that the map is applied to.
            draw: "exact" selects int(rate·N) of all samples, "per_class" int(rate·n) of each class,
                "bernoulli" each with probability `rate`.
            official_seed: select as CTRR's published code does when given this seed, by position;
                needs draw="exact".
        """
        if official_seed is not None and draw != "exact":
            raise UsageError(
                "noise.official_seed: the published generator selects from all samples; it needs "
                f'noise.draw="exact", not {draw!r}'
            )
        self.target = targets(map, num_classes)  # (K,)
        self.rate, self.draw, self.official_seed = rate, draw, official_seed
        self.by_position = self.fixed = official_seed is not None
        self.convention = (
            f"{WORDS[draw].format(rate=rate)} move to {MEANING[map]}{official.words(official_seed)}"
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the expected transition matrix, with one other class at most in a row."""
        unit = np.eye(len(self.target))
        return (1 - self.rate) * unit + self.rate * unit[self.target]

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels, selected by sample; by row where the official seed is set."""
        given = labels.copy()
        rows: NDArray[np.bool_] | NDArray[np.int64]
        if self.official_seed is None:
            rows = select(self.draw, labels, keys, self.rate, seed)
        else:
            rows = official.mask(self.official_seed, len(labels), self.rate)
        given[rows] = self.target[labels[rows]]
        return given


def targets(map: Map, num_classes: int) -> NDArray[np.int64]:
    """Return (K,) what each class becomes."""
    fits = {
        "cifar10": (num_classes == 10, "the ten classes of CIFAR-10"),
        "next": (num_classes >= 2, "at least two classes"),
        "next_in_superclass": (num_classes == 100, "the hundred classes of CIFAR-100"),
        "next_in_five": (num_classes > 0 and num_classes % 5 == 0, "a multiple of five classes"),
    }
    possible, needed = fits[map]
    if not possible:
        raise UsageError(f"noise.map={map!r} needs {needed}; the data have {num_classes}")
    classes = np.arange(num_classes)
    if map == "cifar10":
        return np.array([CIFAR10.get(k, k) for k in range(10)])
    if map == "next":
        return (classes + 1) % num_classes
    return _next_in_group(np.array(CIFAR100) if map == "next_in_superclass" else classes // 5)


def _next_in_group(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next member of each class's group, the first after the last."""
    following = np.empty_like(groups)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        following[members] = np.roll(members, -1)
    return following
