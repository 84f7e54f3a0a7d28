"""Not every odd sample has a wrong label: what else may be odd about it."""

from __future__ import annotations

import math

from torch import Tensor

from unswayed.audits.evidence import Inputs
from unswayed.audits.evidence.neighbours import nearest
from unswayed.audits.opinion import Opinion

AMBIGUOUS = math.log(3.0)
"""Two classes are both plausible if neither is believed in more than three times as much."""

SAME = 0.9999
"""Cosine similarity of features from which on two samples are taken for duplicates."""

FAR = 5.0
"""Robust deviations from the usual nearest neighbour beyond which a sample is an outlier."""


def flags_of(inputs: Inputs, opinion: Opinion) -> dict[int, str]:
    """Return words for rows that are odd: ambiguous, outlier, duplicate, conflict.

    A conflict is a duplicate of a sample with another label.
    """
    words: dict[int, list[str]] = {}

    def note(rows: Tensor, word: str) -> None:
        for row in rows.nonzero().squeeze(1).tolist():
            words.setdefault(row, []).append(word)

    log_top = opinion.log_top
    note((log_top[:, 0] - log_top[:, 1] < AMBIGUOUS) & (log_top[:, 1] > math.log(0.2)), "ambiguous")
    if inputs.features is not None and len(inputs) > 2:
        rows, similarity = nearest(inputs)
        closest, who = similarity[:, 0], rows[:, 0].long()
        middle = closest.median()
        spread = (closest - middle).abs().median().clamp_min(1e-4)
        note(closest < middle - FAR * 1.4826 * spread, "outlier")
        same = closest > SAME
        other = inputs.given[who] != inputs.given
        note(same & ~other, "duplicate")
        note(same & other, "conflict")
    return {row: " ".join(each) for row, each in words.items()}
