"""What corrected labels gained: the networks before and after on the same images.

Differences are paired, image by image. Their 95 % intervals are those of Agresti and Min
(Statistics in Medicine, 2005): half an image is added to each kind of answer, so that few images,
or networks that agree everywhere, do not seem certain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.data import Dataset
from unswayed.device import pick_device
from unswayed.errors import UsageError
from unswayed.runs import Run
from unswayed.training.measure import predictions

NORMAL = 1.96
Right = NDArray[np.bool_]
Rows = NDArray[np.int64]


class Difference(NamedTuple):
    """Two networks on the same images."""

    images: int
    before: float  # share that is predicted as labelled
    after: float
    low: float  # of after - before
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        """Return it in a line."""
        points = 100 * (self.after - self.before)
        told = "" if self.is_clear else ": no difference can be told"
        return (
            f"{100 * self.before:.1f} % -> {100 * self.after:.1f} % of {self.images:,} images "
            f"({points:+.1f} points, 95 % interval {100 * self.low:+.1f} to "
            f"{100 * self.high:+.1f}){told}"
        )


class Gain(NamedTuple):
    """What is known of the gain; None if there are no such images."""

    test: Difference | None
    holdout: Difference | None

    def __str__(self) -> str:
        """Return it in a few lines."""
        lines = []
        if self.test:
            lines.append(f"test set, before -> after: {self.test}")
        if self.holdout:
            lines.append(
                f"noisy hold-out, before -> after: {self.holdout}; these are the images that "
                "neither network was trained on, judged by their original labels, of which some "
                "are wrong"
            )
        if not lines:
            return "there are no images on which the networks can be compared"
        return "\n".join([*lines, "the intervals are over images; another seed may differ more"])


def difference(before: Right, after: Right) -> Difference:
    """Compare two networks by whether each is right, (n,) both."""
    n = len(before)
    worse, better = ((a & ~b).sum() + 0.5 for a, b in ((before, after), (after, before)))
    middle = (better - worse) / (n + 2)
    half = NORMAL * math.sqrt(worse + better - (better - worse) ** 2 / (n + 2)) / (n + 2)
    return Difference(
        n, float(before.mean()), float(after.mean()), float(middle - half), float(middle + half)
    )


def gain(before: Run, after: Run) -> Gain:
    """Compare a run with the one that was trained on its corrected labels.

    Args:
        before: a finished run; its data must still be there.
        after: a finished run on the same images.
    """
    if before.config.classes != after.config.classes:
        raise UsageError(f"{before.path} and {after.path} have different classes")
    train, test = before.data()
    rows = held_out_by_both(before, after)
    return Gain(
        None if test is None else _difference(before, after, test, np.arange(len(test))),
        _difference(before, after, train, rows) if len(rows) else None,
    )


def held_out_by_both(before: Run, after: Run) -> Rows:
    """Return the rows of the first run that neither run was trained on."""
    one, other = before.samples(), after.samples()
    names = set(other.ids[other.holdout].tolist())
    found: Rows = np.array([r for r in one.holdout.tolist() if str(one.ids[r]) in names], np.int64)
    return found


def _difference(before: Run, after: Run, data: Dataset, rows: Rows) -> Difference:
    device = pick_device("auto")
    right = [
        predictions(run.classifier().to(device), data, rows) == data.given[rows]
        for run in (before, after)
    ]
    return difference(*right)
