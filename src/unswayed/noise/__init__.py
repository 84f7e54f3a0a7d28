"""Label noise: true labels in, given labels out.

Every model states its convention through `matrix()`, the probability that a sample of class i is
given label j. What was really drawn is measured afterwards by `realised`, and stored with the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.randomness import Bits
from unswayed.registry import Registry

Labels = NDArray[np.int64]


class Noise(ABC):
    """A way of being wrong."""

    convention: str
    """One sentence: what the rate counts, and whether a label can be redrawn as itself."""

    by_position: bool = False
    """Draws follow the row instead of the sample, as in a published generator that is kept as it
    is: the same images in another order get other labels."""

    by_image: bool = False
    """Draws depend on the pixels: row i of `labels` belongs to image i, and `matrix()` is the mean
    over seeds, from which the matrix of one seed differs."""

    fixed: bool = False
    """The seed of the run changes nothing."""

    @abstractmethod
    def matrix(self) -> NDArray[np.float64]:
        """Return the expected (K, K) transition matrix, rows are true classes."""

    @abstractmethod
    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels; `keys` are the samples' 64-bit ids, so draws follow the sample."""


class Realised(NamedTuple):
    """What noise did to a set of labels."""

    rate: float
    matrix: NDArray[np.float64]  # (K, K); a class without samples has a row of zeros


def realised(true: Labels, given: Labels, num_classes: int) -> Realised:
    """Measure the share of wrong labels and the empirical transition matrix."""
    counts = np.zeros((num_classes, num_classes))
    np.add.at(counts, (true, given), 1)
    rows = counts.sum(axis=1, keepdims=True)
    matrix = np.divide(counts, rows, out=np.zeros_like(counts), where=rows > 0)
    return Realised(float((true != given).mean()) if len(true) else 0.0, matrix)


NOISES: Registry[Noise] = Registry("noise", __name__)
register = NOISES.register
