"""Not every odd sample has a wrong label: what else may be odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from unswayed.audits.duplicates import told
from unswayed.audits.evidence import Inputs
from unswayed.audits.evidence.neighbours import nearest

RATIO, PLAUSIBLE = 3.0, 0.2
"""Two classes are plausible if neither is so many times as probable, and both at least that."""

FAR = 8.0
"""Robust deviations from the usual nearest neighbour beyond which a sample is an outlier."""

Vector = NDArray[np.float64]


def flags_of(
    p_top: Vector,
    outlier: NDArray[np.bool_],
    groups: Sequence[Sequence[int]],
    leaks: Iterable[int],
    labels: NDArray[np.int64],
) -> dict[int, str]:
    """Return words for rows that are odd; `FLAGS` says what they mean.

    Args:
        p_top: (N, 2 or more) probabilities of the most probable classes.
        outlier: (N,).
        groups: rows that show nearly the same.
        leaks: rows that show nearly the same as a test sample.
        labels: (N,) given.
    """
    first, second = p_top[:, 0], p_top[:, 1]
    duplicate, conflict = told(groups, labels)
    found = {
        "ambiguous": np.flatnonzero((first < RATIO * second) & (second > PLAUSIBLE)).tolist(),
        "outlier": np.flatnonzero(outlier).tolist(),
        "duplicate": duplicate,
        "conflict": conflict,
        "leak": leaks,
    }
    words: dict[int, list[str]] = {}
    for word, rows in found.items():
        for row in rows:
            words.setdefault(row, []).append(word)
    return {row: " ".join(words[row]) for row in sorted(words)}


def outliers(inputs: Inputs) -> NDArray[np.bool_]:
    """Return which samples are far from all others, (N,)."""
    if inputs.features is None or len(inputs) <= 2:
        return np.zeros(len(inputs), dtype=bool)
    closest = nearest(inputs)[1][:, 0]
    middle = closest.median()
    spread = (closest - middle).abs().median().clamp_min(1e-4)
    found: NDArray[np.bool_] = (closest < middle - FAR * 1.4826 * spread).numpy()
    return found
