"""Noise by any transition matrix: one you have measured, or one of a paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Noise, register
from unswayed.parsing import read_arrays
from unswayed.randomness import Bits, uniform
from unswayed.types import AbsolutePath

TOLERANCE = 1e-6
"""By how much a row may miss one, so that a matrix printed with six digits is accepted."""


@register("matrix", paper="Natarajan et al., NeurIPS 2013")
class Matrix(Noise):
    """Draw every label from the row of a transition matrix that belongs to its class."""

    def __init__(
        self,
        num_classes: int,
        rows: list[list[float]] | None = None,
        path: AbsolutePath | None = None,
    ) -> None:
        """Check the matrix.

        Args:
            num_classes: K.
            rows: the matrix itself: row i holds the probabilities of the labels that a sample of
                class i can get.
            path: a .npy, .csv or .npz file with the matrix instead; of a .npz the array "matrix",
                or the only one.
        """
        if (rows is None) == (path is None):
            raise UsageError("matrix noise needs one of noise.rows and noise.path")
        where = "noise.rows" if path is None else path
        self._matrix = stochastic(read(where) if rows is None else rows, num_classes, where)
        self.convention = (
            "every label is drawn independently from its class's row of a given matrix, in which "
            f"{100 * (1 - np.diag(self._matrix)).mean():.4g} % of a class is wrong on average"
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the matrix that was given."""
        return self._matrix.copy()

    def corrupt(self, labels: Labels, keys: Bits, seed: int) -> Labels:
        """Return given labels, drawn by sample."""
        draw = uniform(seed, "noise/label", keys)
        given = labels.copy()
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            given[rows] = pick(self._matrix[label], draw[rows])
        return given


def pick(probabilities: NDArray[np.float64], draw: NDArray[np.float64]) -> Labels:
    """Return (B,) classes, given (B, K) or (K,) probabilities and (B,) numbers in [0, 1)."""
    cumulative = probabilities.cumsum(axis=-1)
    cumulative /= cumulative[..., -1:]  # so that a draw just below one meets no class of share 0
    found: Labels = (draw[:, None] >= cumulative).sum(axis=-1)
    return found


def stochastic(rows: ArrayLike, num_classes: int, where: str) -> NDArray[np.float64]:
    """Return a (K, K) matrix whose rows sum to one, or say what is wrong with it."""
    matrix = _array(rows, where)
    if matrix.shape != (num_classes, num_classes):
        raise UsageError(
            f"{where}: the matrix must be {num_classes} × {num_classes}, one row and one column "
            f"for each class of the data; its shape is {matrix.shape}"
        )
    for number, row in enumerate(matrix):
        if not np.isfinite(row).all() or row.min() < 0:
            raise UsageError(f"{where}: row {number} of the matrix holds {_odd(row)}")
        if abs(row.sum() - 1) > TOLERANCE:
            raise UsageError(f"{where}: row {number} of the matrix sums to {row.sum():.6g}, not 1")
    normalised: NDArray[np.float64] = matrix / matrix.sum(axis=1, keepdims=True)
    return normalised


def _odd(row: NDArray[np.float64]) -> str:
    worst = row[~np.isfinite(row) | (row < 0)][0]
    return f"{worst:g}, which is no probability"


def _array(rows: ArrayLike, where: str) -> NDArray[np.float64]:
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: the rows of the matrix are not equally long lists of numbers"
        ) from error


def read(path: str) -> NDArray[np.float64]:
    """Return the matrix of a file, which may hold anything."""
    try:
        if path.endswith(".csv"):
            return np.loadtxt(path, delimiter=",", ndmin=2)
        if path.endswith(".npz"):
            return np.asarray(_only(read_arrays(Path(path))), dtype=np.float64)
        with Path(path).open("rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False), dtype=np.float64)
    except FileNotFoundError:
        raise UsageError(f"noise.path: there is no file {path}") from None
    except Exception as error:  # zip, zlib and NumPy each have their own for a damaged file
        raise UsageError(f"{path} is not a readable .npy, .npz or .csv matrix: {error}") from error


def _only(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if "matrix" not in arrays and len(arrays) != 1:
        raise ValueError(f"it has no array 'matrix'; it has: {', '.join(arrays) or 'none'}")
    return arrays["matrix"] if "matrix" in arrays else next(iter(arrays.values()))
