"""Which evidence to trust, told without a true label.

Evidences err in different ways. A network that has memorised wrong labels defends them; neighbours
in poor features are blind; linear heads on few samples overfit. So each is judged by the others:
how well does it rank the labels that the rest, on average, holds to be wrong? The ones that agree
best are used, together if they agree equally well. Two alone agree with each other as well as the
other way round; of two, the one counts that explains the given labels better.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

CLOSE = 0.005
"""Evidences whose agreement differs by less are equally good."""

PREFERRED = ("network", "consensus", "heads", "neighbours", "dynamics")


def expected_precision(p_wrong: Vector, ranking: Vector) -> float:
    """Return the expected average precision of a ranking, if labels are wrong with these odds.

    Args:
        p_wrong: (N,) probabilities that somebody else gives.
        ranking: (N,) the higher the more suspicious.
    """
    p = p_wrong[np.argsort(-ranking, kind="stable")]
    found = np.cumsum(p)
    total = found[-1]
    if total <= 0:
        return 0.0
    return float((p * found / np.arange(1, len(p) + 1)).sum() / total)


def qualities(p_wrong: Mapping[str, Vector]) -> dict[str, float]:
    """Return how well each evidence agrees with the mean of the others; 1 is as well as possible.

    Args:
        p_wrong: calibrated probabilities (N,) by evidence.
    """
    if len(p_wrong) == 1:
        return dict.fromkeys(p_wrong, 1.0)
    found = {}
    for name, own in p_wrong.items():
        rest = np.mean([p for other, p in p_wrong.items() if other != name], axis=0)
        best = expected_precision(rest, rest)
        found[name] = expected_precision(rest, own) / best if best else 0.0
    return found


def choose(agreement: Mapping[str, float], costs: Mapping[str, float]) -> list[str]:
    """Return the names of the evidences to use.

    Args:
        agreement: of each with the others.
        costs: mean of -log P(given label) by each, of labels that it has not seen.
    """
    if len(agreement) == 2:
        return [min(costs, key=lambda name: costs[name])]
    top = max(agreement.values())
    return [name for name in PREFERRED if agreement.get(name, -1.0) >= top - CLOSE]
