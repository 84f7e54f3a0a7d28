"""The generator of CTRR's published code, label for label.

It shuffles the row numbers with Python's `random` and goes by the sample's place in the data set.
Its seed is a *string*, because the command line of that code hands it over as text, and
`random.seed("2021")` is not `random.seed(2021)`. `tests/noise/test_official.py` holds checksums.
"""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from unswayed.noise import Labels


def selected(generator: random.Random, count: int, rate: float) -> NDArray[np.bool_]:
    """Return the (N,) mask of the int(rate·N) rows that come first in a shuffle."""
    order = list(range(count))
    generator.shuffle(order)
    mask = np.zeros(count, dtype=bool)
    mask[order[: int(count * rate)]] = True
    return mask


def mask(seed: str, count: int, rate: float) -> NDArray[np.bool_]:
    """Return the rows that asymmetric noise is applied to."""
    return selected(random.Random(seed), count, rate)


def drawn(seed: str, count: int, rate: float, num_classes: int) -> Labels:
    """Return the labels symmetric noise draws, from all classes; -1 where it draws none."""
    generator = random.Random(seed)
    labels = np.full(count, -1, dtype=np.int64)
    for row in np.flatnonzero(selected(generator, count, rate)):  # in the order of the rows
        labels[row] = generator.randint(0, num_classes - 1)
    return labels


def words(seed: str | None) -> str:
    """Return what a convention says of a seed of this generator."""
    return "" if seed is None else f", by position, with CTRR's published generator seeded {seed!r}"
