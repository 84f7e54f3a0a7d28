"""Pair flips: every class is mistaken for the next one. Han et al. (Co-teaching), NeurIPS 2018."""

from __future__ import annotations

from unswayed.noise import register
from unswayed.noise.asymmetric import Asymmetric
from unswayed.noise.selection import Draw
from unswayed.types import Fraction


@register("pair", paper="Han et al., NeurIPS 2018")
class Pair(Asymmetric):
    """Move a share of the labels to the next class, the last one to the first."""

    def __init__(self, num_classes: int, rate: Fraction = 0.4, draw: Draw = "exact") -> None:
        """Store the convention.

        Args:
            num_classes: K.
            rate: share of wrong labels.
            draw: "exact" selects int(rate·N) of all samples, "per_class" int(rate·n) of each class,
                "bernoulli" each with probability `rate`, as Co-teaching does.
        """
        super().__init__(num_classes, "next", rate, draw)
