"""P(wrong) without a clean label: slope and offset are fitted, neither is fixed.

The slope is a temperature. Given labels are modelled as true ones that a noise has changed; the
temperature at which an evidence explains them best, on rows it has not seen, says how far its
margins can be taken at their word. The offset makes the mean of P(wrong) the estimated share of
wrong labels: of each given class, as far as the class is large enough to have a say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs

ROWS = 20_000
"""Rows that the temperature is fitted on at the most."""

SHRINK = 300.0
"""Samples of a class at which its own rate counts as much as that of all classes."""

LIMIT = 60.0
"""Of an offset: P(wrong) is 0 or 1 beyond."""

Vector = NDArray[np.float64]


class Calibration(NamedTuple):
    """P(wrong) = σ(-(slope · margin + offset of the given class))."""

    slope: float
    offsets: Vector  # (K,)

    def p_wrong(self, margin: Vector, given: NDArray[np.int64]) -> Vector:
        """Return the probability (N,) that each label is wrong."""
        found: Vector = expit(-(self.slope * margin + self.offsets[given]))
        return found


def temperature(evidence: Evidence, inputs: Inputs, rows: NDArray[np.int64]) -> tuple[float, float]:
    """Return slope and noise rate that explain the given labels of rows best.

    The slope is an inverse temperature. Labels are true with probability 1 - ρ, else any other
    class. That ρ is a lower bound where wrong labels are plausible ones, as people's are.

    Args:
        evidence: whose beliefs are scaled.
        inputs: all rows.
        rows: those whose labels the evidence has not seen.
    """
    if len(rows) > ROWS:
        rows = rows[:: -(-len(rows) // ROWS)]
    beliefs = _beliefs_of(evidence, inputs, rows).double()
    labels, classes = inputs.given[torch.from_numpy(rows)], inputs.num_classes

    def cost(free: Vector) -> float:
        slope, rate = float(np.exp(free[0])), float(expit(free[1]))
        q = (beliefs * slope).softmax(dim=1).gather(1, labels[:, None]).squeeze(1)
        likely = q * (1 - rate) + (1 - q) * rate / max(classes - 1, 1)
        return float(-likely.clamp_min(1e-12).log().mean())

    starts = [(np.log(slope), -1.5) for slope in (0.5, 1.0, 3.0)]
    fits = [minimize(cost, start, method="Nelder-Mead") for start in starts]
    best = min(fits, key=lambda fit: float(fit.fun))
    return float(np.clip(np.exp(best.x[0]), 0.05, 20.0)), float(expit(best.x[1]))


def _beliefs_of(evidence: Evidence, inputs: Inputs, rows: NDArray[np.int64]) -> Tensor:
    """Return log-beliefs (n, K) of some rows."""
    wanted, parts, start = torch.from_numpy(rows), [], 0
    for chunk in evidence.log_beliefs(inputs):
        mine = wanted[(wanted >= start) & (wanted < start + len(chunk))] - start
        parts.append(chunk[mine])
        start += len(chunk)
    return torch.cat(parts)


def calibrate(
    margin: Vector, given: NDArray[np.int64], slope: float, rate: float, class_rates: Vector
) -> Calibration:
    """Return the calibration whose mean P(wrong) is the rate, by class as far as it can be told.

    Args:
        margin: (N,).
        given: (N,) labels.
        slope: of the margin.
        rate: estimated share of wrong labels.
        class_rates: (K,) the same of the samples with each label.
    """
    counts = np.bincount(given, minlength=len(class_rates)).astype(float)
    own = counts / (counts + SHRINK)
    wanted = own * class_rates + (1 - own) * rate
    total = float((wanted * counts).sum() / counts.sum())
    wanted = np.clip(wanted * (rate / total if total else 1.0), 1e-6, 1 - 1e-6)
    offsets = np.zeros(len(class_rates))
    for label in np.flatnonzero(counts):
        m = margin[given == label]
        offsets[label] = _offset(slope * m, float(wanted[label]))
    return Calibration(slope, offsets)


def _offset(scaled: Vector, rate: float) -> float:
    """Return b with mean σ(-(scaled + b)) = rate."""

    def excess(b: float) -> float:
        return float(expit(-(scaled + b)).mean() - rate)

    low, high = -LIMIT - float(scaled.max()), LIMIT - float(scaled.min())
    return float(brentq(excess, low, high))
