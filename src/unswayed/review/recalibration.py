"""Decisions are labels: what people found corrects what the audit expected.

    P(said wrong) = ε + (1 - 2ε) σ(η),     η = (1 + a) · logit p + b + c[given class]

p is the audit's P(wrong), and ε the share of decisions that are mistakes. a, b and c are zero
before the first decision. Their priors are normal; that of b is as wide as the audit's own
interval of the rate, so that with no decision the audit is left as it was. Which samples people
looked at depends on p and on the class, which the model has, so looking at the worst first does
not bend it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from unswayed.audits.search import MODEL

SLOPE, CLASS = 0.25, 0.5
"""Prior deviations of a and of c."""

NARROWEST, WIDEST = 0.1, 1.5
"""Prior deviation of b, whatever the audit says of the rate."""

SMALLEST, ROUNDS, ENOUGH, NINETY = 1e-6, 50, 1e-8, 1.645
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]


class Expected(NamedTuple):
    """A number that is not known, and an interval that should hold it 9 times in 10."""

    value: float
    low: float
    high: float


class Recalibrated(NamedTuple):
    """The corrected P(wrong), and how sure it is."""

    p_wrong: Vector  # (N,)
    log_odds: Vector  # (N,) of the audit
    given: Rows  # (N,)
    a: float
    b: float
    c: Vector  # (K,)
    covariance: Vector  # (2, 2) of a and b
    cross: Vector  # (2, K) covariance of a and b with c
    spread: Vector  # (K,) variance of c, given a and b

    def expected_wrong(self, rows: Rows) -> Expected:
        """Return how many labels of some rows are wrong.

        The interval has the uncertainty of the fit, that of a draw, and what audits were off by
        where the truth is known.
        """
        p = self.p_wrong[rows]
        total = float(p.sum())
        if total <= 0:
            return Expected(0.0, 0.0, 0.0)
        steep = p * (1 - p)
        both = np.array([float((steep * self.log_odds[rows]).sum()), float(steep.sum())])
        own: Vector = np.bincount(self.given[rows], steep, len(self.c)).astype(np.float64)
        variance = (
            float(both @ self.covariance @ both)
            + 2 * float(both @ self.cross @ own)
            + self._own_variance(own)
            + float(steep.sum())
            + (MODEL * total) ** 2
        )
        reach = float(np.exp(NINETY * np.sqrt(variance) / total))
        return Expected(total, total / reach, min(total * reach, float(len(rows))))

    def _own_variance(self, own: Vector) -> float:
        """Return ownᵀ Cov(c) own. Cov(c) is its diagonal given a and b, and what these add."""
        added = self.cross @ own
        inner = float(added @ np.linalg.solve(self.covariance, added))
        return float((own**2 * self.spread).sum()) + inner


def recalibrate(
    p_wrong: Vector,
    given: Rows,
    classes: int,
    rows: Rows,
    said_wrong: NDArray[np.bool_],
    *,
    mistakes: float,
    rate_error: float,
) -> Recalibrated:
    """Fit a, b and c to decisions, by Fisher scoring.

    Args:
        p_wrong: (N,) of the audit.
        given: (N,) labels.
        classes: K.
        rows: (n,) that were decided.
        said_wrong: (n,) whether the label was said to be wrong.
        mistakes: ε.
        rate_error: standard error of the audit's share of wrong labels.
    """
    odds: Vector = logit(np.clip(p_wrong, SMALLEST, 1 - SMALLEST))
    steep = float((p_wrong * (1 - p_wrong)).mean())
    wide = float(np.clip(rate_error / max(steep, SMALLEST), NARROWEST, WIDEST))
    precision, own_precision = np.array([SLOPE**-2, wide**-2]), CLASS**-2
    x = np.stack([odds[rows], np.ones(len(rows))], axis=1)  # (n, 2)
    k = given[rows]
    y = said_wrong.astype(np.float64)
    both, c = np.zeros(2), np.zeros(classes)
    for _ in range(ROUNDS):
        p = expit(odds[rows] + x @ both + c[k])
        mean = mistakes + (1 - 2 * mistakes) * p
        slope = (1 - 2 * mistakes) * p * (1 - p)
        spread = np.maximum(mean * (1 - mean), SMALLEST)
        pull, weight = slope * (y - mean) / spread, slope**2 / spread
        # Blocks of the information matrix: a and b, both with c, and c, which is diagonal.
        top = (x * weight[:, None]).T @ x + np.diag(precision)
        side = np.stack([np.bincount(k, weight * x[:, j], classes) for j in (0, 1)])
        down = np.bincount(k, weight, classes) + own_precision
        g = x.T @ pull - precision * both
        h = np.bincount(k, pull, classes) - own_precision * c
        schur = top - (side / down) @ side.T
        step = np.linalg.solve(schur, g - side @ (h / down))
        own_step = (h - side.T @ step) / down
        size = max(float(np.abs(step).max()), float(np.abs(own_step).max()))
        shrink = min(1.0, 2.0 / size) if size > 0 else 1.0  # far from the optimum, not too far
        both, c = both + shrink * step, c + shrink * own_step
        if size < ENOUGH:
            break
    covariance = np.linalg.inv(schur)
    cross = -covariance @ (side / down)
    fitted: Vector = expit(odds + both[0] * odds + both[1] + c[given])
    return Recalibrated(
        fitted, odds, given, float(both[0]), float(both[1]), c, covariance, cross, 1 / down
    )
