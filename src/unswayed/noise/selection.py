"""Which samples a noise touches: the three readings of "a share of the labels"."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unswayed.noise import Labels
from unswayed.randomness import Bits, permutation, uniform

Draw = Literal["exact", "per_class", "bernoulli"]

WORDS: dict[Draw, str] = {
    "exact": "exactly {rate:g} of the samples",
    "per_class": "exactly {rate:g} of the samples of every class",
    "bernoulli": "samples, each with probability {rate:g},",
}


def select(draw: Draw, labels: Labels, keys: Bits, rate: float, seed: int) -> NDArray[np.int64]:
    """Return the rows that are selected; whether a sample is among them depends on its key.

    Args:
        draw: "exact" takes int(rate·N) samples, "per_class" int(rate·n) of every class,
            "bernoulli" each sample with probability `rate`.
        labels: (N,) before the noise.
        keys: (N,) the samples' keys.
        rate: the share.
        seed: the run's seed.
    """
    if draw == "bernoulli":
        return np.flatnonzero(uniform(seed, "noise/select", keys) < rate)
    order = permutation(seed, "noise/select", keys)
    if draw == "exact":
        return order[: int(rate * len(labels))]
    by_label = order[np.argsort(labels[order], kind="stable")]
    of_class = np.split(by_label, np.cumsum(np.bincount(labels))[:-1])
    chosen = [rows[: int(rate * len(rows))] for rows in of_class]
    return np.concatenate(chosen) if chosen else order
