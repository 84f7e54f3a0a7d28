"""Decisions are labels: what people found corrects what the audit expected.

    P(said wrong) = α (1 - σ(η)) + (1 - α / (K - 1)) σ(η),     η = ℓ + f(ℓ) + c[given class]

ℓ is the logit of the audit's P(wrong). A person who errs says any other class, so that a right
label is called wrong in a share α of the cases, and a wrong one right in α / (K - 1). α is fitted
around the share of mistakes that second looks have shown.

f is straight from knot to knot, and constant beyond the last ones. Before the first decision f and
c are zero. Their priors are normal: f may change the share of wrong labels as far as the audit's
own interval says, so that with no decision the audit is left as it was. And f is a random walk
whose steps grow with |ℓ|, so that what was seen among the worst labels says little of the end of
the queue. Which samples people looked at depends on p and on the class, which the model has, so
looking at the worst first does not bend it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

KNOTS = np.arange(-6.0, 7.0)
"""Log-odds where f may bend; 0 is a P(wrong) of a half."""

WALK, CLASS, DOUBT = 0.4, 0.5, 0.35
"""Prior deviations: of a step of f, for each 1 + |ℓ|, of c, and of the logarithm of α."""

MIDDLE, LEVEL = 6, 1.0
"""The knot at 0, and the prior deviation of f there, whatever the audit says of the rate."""

SMALLEST, ROUNDS, ENOUGH, NINETY = 1e-6, 50, 1e-6, 1.645
DRAWS = 4000
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
    f: Vector  # (J,) at the knots
    c: Vector  # (K,)
    mistakes: float  # α
    covariance: Vector  # (J + 1, J + 1) of f and log α
    cross: Vector  # (J + 1, K) covariance of these with c
    spread: Vector  # (K,) variance of c, given all others

    def expected_wrong(self, rows: Rows) -> Expected:
        """Return how many labels of some rows are wrong.

        The interval has the uncertainty of the fit, and that of a draw.
        """
        p = self.p_wrong[rows]
        total = float(p.sum())
        if total <= 0:
            return Expected(0.0, 0.0, 0.0)
        steep = p * (1 - p)
        pull = np.append(shared_out(self.log_odds[rows], steep), 0.0)  # α changes no label
        own: Vector = np.bincount(self.given[rows], steep, len(self.c)).astype(np.float64)
        variance = (
            float(pull @ self.covariance @ pull)
            + 2 * float(pull @ self.cross @ own)
            + self._own_variance(own)
        )
        return _count(total, np.sqrt(variance) / total, len(rows))

    def _own_variance(self, own: Vector) -> float:
        """Return ownᵀ Cov(c) own. Cov(c) is its diagonal given the others, and what these add."""
        added = self.cross @ own
        inner = float(added @ np.linalg.solve(self.covariance, added))
        return float((own**2 * self.spread).sum()) + inner


def _count(total: float, error: float, most: int) -> Expected:
    """Return the interval of a count whose expectation is known up to a factor.

    A draw from few doubtful labels may well be 0, which an interval of the factor alone never
    holds.
    """
    rng = np.random.default_rng(0)
    means = np.minimum(total * np.exp(error * rng.standard_normal(DRAWS)), most)
    low, high = np.quantile(rng.poisson(means), (0.05, 0.95))
    return Expected(total, min(float(low), total), max(min(float(high), float(most)), total))


def _between(log_odds: Vector) -> tuple[Rows, Vector]:
    """Return the knot to the left of each value, and how far it is to the next one, in [0, 1]."""
    at = np.clip(log_odds, KNOTS[0], KNOTS[-1]) - KNOTS[0]
    left = np.minimum(at.astype(np.int64), len(KNOTS) - 2)  # knots are one apart
    return left, at - left


def hats(log_odds: Vector) -> Vector:
    """Return the weights (n, J) of the knots that f is a mixture of."""
    left, share = _between(log_odds)
    found = np.zeros((len(left), len(KNOTS)))
    rows = np.arange(len(left))
    found[rows, left], found[rows, left + 1] = 1 - share, share
    return found


def shared_out(log_odds: Vector, values: Vector) -> Vector:
    """Return values @ hats(log_odds), (J,), for a million rows without a matrix of them."""
    left, share = _between(log_odds)
    below = np.bincount(left, values * (1 - share), len(KNOTS))
    above = np.bincount(left + 1, values * share, len(KNOTS))
    return (below + above).astype(np.float64)


def prior_precision(log_odds: Vector, p_wrong: Vector, rate_error: float) -> Vector:
    """Return the prior precision (J + 1, J + 1) of f and log α.

    f is a random walk, and is known to change the share of wrong labels by no more than the error
    of the audit's share.
    """
    far = np.abs(KNOTS[1:] + KNOTS[:-1]) / 2
    steps = np.diff(np.eye(len(KNOTS)), axis=0) / (WALK * (1 + far))[:, None]
    moves = shared_out(log_odds, p_wrong * (1 - p_wrong)) / len(p_wrong)
    moves /= max(rate_error, SMALLEST)
    found = np.zeros((len(KNOTS) + 1, len(KNOTS) + 1))
    found[:-1, :-1] = steps.T @ steps + np.outer(moves, moves)
    found[MIDDLE, MIDDLE] += LEVEL**-2
    found[-1, -1] = DOUBT**-2
    return found


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
    """Fit f, c and α to decisions, by Fisher scoring.

    Args:
        p_wrong: (N,) of the audit.
        given: (N,) labels.
        classes: K.
        rows: (n,) that were decided.
        said_wrong: (n,) whether the label was said to be wrong.
        mistakes: share of decisions that are mistakes, as second looks have shown.
        rate_error: standard error of the audit's share of wrong labels.
    """
    odds: Vector = logit(np.clip(p_wrong, SMALLEST, 1 - SMALLEST))
    prior, own_precision = prior_precision(odds, p_wrong, rate_error), CLASS**-2
    basis, k = hats(odds[rows]), given[rows]
    y = said_wrong.astype(np.float64)
    shared, c = np.zeros(len(KNOTS) + 1), np.zeros(classes)
    for _ in range(ROUNDS):
        p = expit(odds[rows] + basis @ shared[:-1] + c[k])
        alarm = min(mistakes * float(np.exp(shared[-1])), 0.4)
        miss = alarm / max(classes - 1, 1)
        mean = alarm + (1 - alarm - miss) * p
        slope = (1 - alarm - miss) * p * (1 - p)
        # Changes of the mean with f and log α; with c it changes as `slope` says.
        x = np.concatenate([basis * slope[:, None], (alarm * (1 - p) - miss * p)[:, None]], axis=1)
        spread = np.maximum(mean * (1 - mean), SMALLEST)
        off = (y - mean) / spread
        # Blocks of the information matrix: f and α, both with c, and c, which is diagonal.
        top = (x / spread[:, None]).T @ x + prior
        side = np.stack(
            [np.bincount(k, slope * x[:, j] / spread, classes) for j in range(x.shape[1])]
        )
        down = np.bincount(k, slope**2 / spread, classes) + own_precision
        g = x.T @ off - prior @ shared
        h = np.bincount(k, slope * off, classes) - own_precision * c
        schur = top - (side / down) @ side.T
        step = np.linalg.solve(schur, g - side @ (h / down))
        own_step = (h - side.T @ step) / down
        size = max(float(np.abs(step).max()), float(np.abs(own_step).max()))
        shrink = min(1.0, 1.0 / size) if size > 0 else 1.0  # far from the optimum, not too far
        shared, c = shared + shrink * step, c + shrink * own_step
        if size < ENOUGH:
            break
    covariance = np.linalg.inv(schur)
    cross = -covariance @ (side / down)
    f: Vector = shared[:-1]
    fitted: Vector = expit(odds + np.interp(odds, KNOTS, f) + c[given])
    return Recalibrated(fitted, odds, given, f, c, float(alarm), covariance, cross, 1 / down)
