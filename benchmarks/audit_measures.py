"""How good a search for wrong labels was, once the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from unswayed import Audit

BINS = 15
Vector = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


def calibration_error(p: Vector, wrong: Mask) -> float:
    """Return how far P(wrong) is from the share of wrong labels, on average over equal bins."""
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(sum(len(b) * abs(p[b].mean() - wrong[b].mean()) for b in bins) / len(p))


def ranking(score: Vector, suggested: Labels, given: Labels, true: Labels) -> dict[str, Any]:
    """Return how well a score ranks wrong labels first; N is the number of wrong ones.

    Args:
        score: (N,) higher is more suspicious.
        suggested: (N,) another label for each sample.
        given: (N,)
        true: (N,)
    """
    wrong = given != true
    first = np.argsort(-score, kind="stable")[: int(wrong.sum())]
    hits = first[wrong[first]]
    right = suggested[hits] == true[hits]
    return {
        "ap": float(average_precision_score(wrong, score)),
        "auroc": float(roc_auc_score(wrong, score)),
        "precision_at_n": float(wrong[first].mean()),
        "suggestions_right": float(right.mean()) if len(hits) else None,
    }


def precision(found: Audit, wrong: Mask, count: int) -> dict[str, Any]:
    """Return which share of the first so many labels is wrong, as expected and in truth."""
    if count == 0:
        return {"count": 0, "expected": None, "real": None}
    expected = found.expected_wrong(count) / count
    return {
        "count": count,
        "expected": expected,
        "real": float(wrong[found.order[:count]].mean()),
    }


def judged(found: Audit, true: Labels) -> dict[str, Any]:
    """Return everything that is measured of our own audit."""
    wrong = found.given != true
    rate, (low, high) = float(wrong.mean()), (found.noise.low, found.noise.high)
    return {
        **ranking(found.p_wrong, found.suggested, found.given, true),
        "calibration_error": calibration_error(found.p_wrong, wrong),
        "rate": {
            "estimated": float(found.noise.rate),
            "low": float(low),
            "high": float(high),
            "covers": bool(low <= rate <= high),
        },
        "review": precision(found, wrong, found.to_review),
        "half": precision(found, wrong, int(wrong.sum()) // 2),
        "evidence": found.evidence,
    }


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation; the latter is nan for a single value."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), spread
