"""What blind re-checks measure: how much the audit overlooked, and how often a reviewer errs.

Two kinds are mixed into the queue. An *unsuspected* image has a label that the audit trusts; if
people say that it is wrong, the audit has missed it. A *repeat* was decided before; who decides
otherwise the second time was wrong once. All intervals are 90 %, by Jeffreys' prior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unswayed.review.recalibration import Expected

DRAWS = 20_000
PRIOR = (1.0, 24.0)
"""Second looks that differ and do not, before anything is known: 4 %, so mistakes are 2 %."""

Vector = NDArray[np.float64]


def _interval(draws: Vector, value: float) -> Expected:
    low, high = np.quantile(draws, (0.05, 0.95))
    return Expected(value, min(float(low), value), max(float(high), value))


def _shares(wrong: int, count: int, prior: tuple[float, float] = (0.5, 0.5)) -> Vector:
    rng = np.random.default_rng(0)
    return rng.beta(wrong + prior[0], count - wrong + prior[1], DRAWS)


def mistakes(differing: int, repeats: int) -> Expected | None:
    """Return the share of decisions that are mistakes, if anything was decided twice.

    Two decisions differ if exactly one of them is a mistake: with probability 2ε(1 - ε).
    """
    if not repeats:
        return None
    share = min(differing / repeats, 0.5)
    draws = np.minimum(_shares(differing, repeats), 0.5)
    return _interval(_half(draws), float(_half(np.array(share))))


def _half(differing: Vector) -> Vector:
    """Return ε with 2ε(1 - ε) = differing."""
    found: Vector = (1 - np.sqrt(1 - 2 * differing)) / 2
    return found


def usual_mistakes(differing: int, repeats: int) -> float:
    """Return a share of mistakes to reckon with, also if few decisions were repeated."""
    share = (differing + PRIOR[0]) / (repeats + sum(PRIOR))
    return float(_half(np.array(min(share, 0.5))))


def recall(
    found: float,
    said_wrong: int,
    checked: int,
    unsuspected: int,
    differing: int,
    repeats: int,
    known: tuple[int, int] = (0, 0),
) -> Expected | None:
    """Return which share of all wrong labels the audit suspects, if unsuspected ones were checked.

    A reviewer who errs calls some right labels wrong; their share is taken off.

    Args:
        found: wrong labels among the suspected ones.
        said_wrong: wrong labels among those that were checked.
        checked: how many unsuspected labels were checked.
        unsuspected: how many there are that these stand for: themselves, and those not decided.
        differing: decisions that differ from the first one.
        repeats: decisions that were made twice.
        known: labels that were said to be wrong among unsuspected ones that were decided in
            another way, and how many those are.
    """
    if not checked:
        return None
    rng = np.random.default_rng(1)
    error = _half(
        np.minimum(
            rng.beta(differing + PRIOR[0], repeats - differing + PRIOR[1], DRAWS),
            0.49,
        )
    )
    share = _shares(said_wrong, checked)
    missed = np.clip((share - error) / (1 - 2 * error), 0, 1) * unsuspected
    missed += _really(known, error)
    usual = usual_mistakes(differing, repeats)
    best = max((said_wrong / checked - usual) / (1 - 2 * usual), 0.0) * unsuspected
    best += float(_really(known, np.array(usual)))
    shares = found / np.maximum(found + missed, 1e-9)
    return _interval(shares, found / max(found + best, 1e-9))


def _really(known: tuple[int, int], error: Vector) -> Vector:
    """Return how many of some labels are wrong, if so many were said to be, with mistakes."""
    said, judged = known
    found: Vector = np.clip((said - error * judged) / (1 - 2 * error), 0, judged)
    return found
