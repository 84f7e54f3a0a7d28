"""Labels from a file: noise that was drawn once, for everybody who compares with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, register
from unswayed.noise.labels import read
from unswayed.randomness import Bits, keys_of
from unswayed.types import AbsolutePath


@register("file")
class Stored(Noise):
    """Take the labels that `unswayed noise make` saved, matched by sample id."""

    fixed = True

    def __init__(self, num_classes: int, path: AbsolutePath) -> None:
        """Read the file.

        Args:
            num_classes: K.
            path: a .npz or .csv file of `unswayed noise make`.
        """
        self.path = Path(path)
        self.labels = read(self.path)
        found = len(self.labels.classes)
        if found != num_classes:
            raise UsageError(f"{path} has labels of {found} classes; the data have {num_classes}")
        self.convention = (
            f"labels stored in {self.path.name}, drawn with seed {self.labels.seed}: "
            f"{self.labels.convention}"
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the matrix by which the stored labels differ; a class without samples stays."""
        matrix = self.labels.realised().matrix
        empty = matrix.sum(axis=1) == 0
        matrix[empty] = np.eye(len(matrix))[empty]
        return matrix

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return the stored labels of these samples; the seed is not used."""
        stored = keys_of(self.labels.ids)
        order = np.argsort(stored)
        place = order[np.searchsorted(stored, keys, sorter=order).clip(max=len(order) - 1)]
        missing = np.flatnonzero(stored[place] != keys)
        if len(missing):
            raise UsageError(
                f"{self.path} has no label for {len(missing)} of the {len(keys)} samples, the "
                f"first of them in row {missing[0]}; was it made for these data?"
            )
        other = np.flatnonzero(self.labels.before[place] != labels)
        if len(other):
            raise UsageError(
                f"{self.path} was made for other labels: {len(other)} of the {len(keys)} samples "
                f"had another class before the noise, the first of them in row {other[0]}"
            )
        given: Labels = self.labels.given[place]
        return given
