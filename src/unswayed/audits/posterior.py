"""P(true class | image, given label) without a clean label: nothing is fixed, all is fitted.

    P(j | x, i)  ∝  p_j(x)^s · T[j, i]^λ              and P(wrong) = 1 - P(i | x, i)

p are an evidence's beliefs. T is the noise among the samples that are most surely told. The slope s
is the inverse temperature at which p and T explain the labels that the evidence has not seen. λ
says how far T can be taken at its word: as far as wrong labels of a class are of one kind. An
offset for every given class makes the mean of P(wrong) the estimated share of wrong labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs
from unswayed.audits.result import Bin
from unswayed.noise.estimate import smoothed

ROWS, NUMBERS = 10_000, 2**22
"""Rows and beliefs that the slope is fitted to at the most."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the noise, that are tried to see how much of it the labels bear out."""

CAUTION = 0.9
"""Share of the fitted slope that is used. The fit holds that labels and evidence err independently;
people and networks are often misled by the same images, so margins mean a little less."""

PAIRS, CLASS = 20.0, 1000.0
"""Samples of a true class, and of a given one, at which they count as much as all classes."""

TOP = 3
"""Classes that are kept of each row, the most probable first."""

RARE = 10.0
"""Samples of a class at which what is said of them counts as much as what is said of all: of a
class that is hardly there, nothing has been learnt."""

LIMIT, SMALLEST, BINS = 60.0, 1e-6, 12
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]


class Noise(NamedTuple):
    """What is known of the noise before any label is judged."""

    rate: float  # estimated share of wrong labels
    log_matrix: Tensor  # (K, K) log T, a row for each given label, a column for each true class
    trust: float  # λ
    class_rates: Vector  # (K,) share of wrong labels by given label
    class_counts: Vector  # (K,) samples that tell it


class Judgement(NamedTuple):
    """What an evidence and the noise say together about all N labels."""

    p_wrong: Vector  # (N,)
    suggested: Rows  # (N,) the most probable class other than the given one
    p_suggested: Vector  # (N,)
    top: Rows  # (N, TOP) the most probable classes
    p_top: Vector  # (N, TOP)
    joint: Vector  # (K, K) expected share of samples by given (rows) and true class
    slope: float
    support: float  # share of the noise with which labels are explained best
    cost: float  # mean of -log P(given label) of labels that were not seen
    reliability: tuple[Bin, ...]


def noise_of(counts: Vector, rate: float, labelled: Rows) -> Noise:
    """Return what confident samples tell about the noise; classes with few of them tell less.

    Args:
        counts: (K, K) of confident samples by given label (rows) and prediction (columns).
        rate: estimated share of wrong labels.
        labelled: (K,) samples with each label.
    """
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    told = counts.sum(axis=1)
    own = wrong.sum(axis=1) / np.maximum(told, 1)
    mean = float((own * labelled).sum() / max(labelled.sum(), 1))
    rates = np.clip(own * (rate / mean if mean > 0 else 1.0), 0, 1)
    matrix = np.maximum(smoothed(counts, PAIRS), SMALLEST)
    log_matrix = torch.from_numpy(np.log(matrix)).float()
    return Noise(rate, log_matrix, concentration(wrong), rates, told)


def concentration(wrong: Vector) -> float:
    """Return 0 if wrong labels of a class are any class, 1 if they are always the same one.

    The square root of Simpson's index, without the bias of small counts.

    Args:
        wrong: (K, K) counts, a column for each true class, without right ones.
    """
    classes = len(wrong)
    total = wrong.sum(axis=0)
    pairs = float((total * (total - 1)).sum())
    if classes == 2:
        return 1.0
    if pairs <= 0:
        return 0.0
    alike = float((wrong * (wrong - 1)).sum()) / pairs
    chance = 1 / (classes - 1)
    return float(np.sqrt(np.clip((alike - chance) / (1 - chance), 0.0, 1.0)))


def judge_by(evidence: Evidence, inputs: Inputs, noise: Noise, unseen: Rows) -> Judgement:
    """Judge all labels by one evidence.

    Args:
        evidence: whose beliefs are used.
        inputs: all rows.
        noise: what is known of it.
        unseen: rows whose labels the evidence has not seen.
    """
    fitted, cost, support, reliability = explain(evidence, inputs, noise, unseen)
    slope = CAUTION * fitted

    def scores() -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield rows, the log-odds (b,) of their labels, and scores (b, K) of other classes."""
        tempered = noise.trust * noise.log_matrix
        for at, beliefs in zip(inputs.chunks(), evidence.log_beliefs(inputs), strict=True):
            given = inputs.given[at]
            each = slope * beliefs + tempered[given]
            own = each.gather(1, given[:, None])
            others = each.scatter(1, given[:, None], -torch.inf)
            yield at, own.squeeze(1) - others.logsumexp(dim=1), others

    log_odds = np.concatenate([odds.double().numpy() for _, odds, _ in scores()])
    p_wrong = _fitted(log_odds, inputs.labels, noise)
    classes = np.empty((len(inputs), min(TOP, inputs.num_classes - 1) + 1), dtype=np.int64)
    p = np.empty(classes.shape)
    total = torch.zeros(inputs.num_classes, inputs.num_classes, dtype=torch.float64)
    for at, _, others in scores():
        each = others.softmax(dim=1).double() * torch.from_numpy(p_wrong[at])[:, None]
        total.index_add_(0, inputs.given[at], each)
        values, best = each.topk(classes.shape[1] - 1, dim=1)
        classes[at, 1:], p[at, 1:] = best.numpy(), values.numpy()
    joint = total.numpy()
    classes[:, 0], p[:, 0] = inputs.labels, 1 - p_wrong
    joint[np.diag_indices(len(joint))] = np.bincount(inputs.labels, p[:, 0], len(joint))
    order = np.argsort(-p, axis=1, kind="stable")[:, :TOP]
    top, p_top = np.take_along_axis(classes, order, 1), np.take_along_axis(p, order, 1)
    return Judgement(
        p_wrong,
        classes[:, 1],
        p[:, 1],
        top,
        p_top,
        joint / len(inputs),
        slope,
        support,
        cost,
        reliability,
    )


def together(judgements: Sequence[Judgement], given: Rows) -> Judgement:
    """Return the mean of P(wrong); what else there is to say comes from the first judgement."""
    first = judgements[0]
    if len(judgements) == 1:
        return first
    p_wrong = np.mean([each.p_wrong for each in judgements], axis=0)
    more = p_wrong / np.maximum(first.p_wrong, 1e-300)
    is_given = first.top == given[:, None]
    p_top = np.where(is_given, 1 - p_wrong[:, None], first.p_top * more[:, None])
    order = np.argsort(-p_top, axis=1, kind="stable")
    return first._replace(
        p_wrong=p_wrong,
        p_suggested=first.p_suggested * more,
        top=np.take_along_axis(first.top, order, 1),
        p_top=np.take_along_axis(p_top, order, 1),
    )


def _fitted(log_odds: Vector, given: Rows, noise: Noise) -> Vector:
    """Return P(wrong), whose mean is the rate.

    One offset for all classes makes it so. A class of many confident samples has an offset of its
    own, by the share of wrong labels among those; smaller ones lie between.
    """
    rate = float(np.clip(noise.rate, SMALLEST, 1 - SMALLEST))
    p_wrong: Vector = expit(-(log_odds + _offset(log_odds, rate)))
    labels, count = np.unique(given, return_counts=True)
    own = noise.class_counts[labels] / (noise.class_counts[labels] + CLASS)
    usual = (np.bincount(given, p_wrong)[labels] + RARE * rate) / (count + RARE)
    wanted = own * noise.class_rates[labels] + (1 - own) * usual
    total = float((wanted * count).sum() / count.sum())
    wanted = np.clip(wanted * (rate / total if total > 0 else 1.0), SMALLEST, 1 - SMALLEST)
    for label, share in zip(labels.tolist(), wanted.tolist(), strict=True):
        mine = given == label
        p_wrong[mine] = expit(-(log_odds[mine] + _offset(log_odds[mine], share)))
    return p_wrong


def _offset(scores: Vector, rate: float) -> float:
    """Return b with mean σ(-(scores + b)) = rate."""

    def excess(b: float) -> float:
        return float(expit(-(scores + b)).mean() - rate)

    return float(brentq(excess, -LIMIT - float(scores.max()), LIMIT - float(scores.min())))


def explain(
    evidence: Evidence, inputs: Inputs, noise: Noise, unseen: Rows
) -> tuple[float, float, float, tuple[Bin, ...]]:
    """Return the slope that explains labels best, its cost, the noise they bear out, and bins.

    A given label i has probability Σ_j p_j^s T[j, i]. The bins compare that, for the class that is
    most probable, with how often it is the label. A weak model differs from labels by its own
    mistakes; then its doubts alone explain them as well as any noise does.
    """
    most = min(ROWS, max(200, NUMBERS // inputs.num_classes))
    if len(unseen) > most:
        keys = np.argsort(inputs.keys[unseen], kind="stable")
        unseen = np.sort(unseen[keys[:most]])
    beliefs = _beliefs_of(evidence, inputs, unseen).double()
    labels, matrix = inputs.given[torch.from_numpy(unseen)], noise.log_matrix.exp().double()

    def fit(noisy: Tensor, precision: float) -> tuple[float, float]:
        """Return the smallest cost and its slope."""

        def cost_of(log_slope: float) -> float:
            p = (beliefs * float(np.exp(log_slope))).softmax(dim=1)
            return float(-(p * noisy[labels]).sum(dim=1).clamp_min(1e-12).log().mean())

        found = minimize_scalar(
            cost_of, bounds=(-3.0, 3.0), method="bounded", options={"xatol": precision}
        )
        return float(found.fun), float(np.exp(found.x))

    none = torch.full_like(matrix, SMALLEST).fill_diagonal_(1.0)
    costs = [fit((1 - share) * none + share * matrix, 0.02)[0] for share in SHARES]
    cost, slope = fit(matrix, 1e-6)
    expected, label = ((beliefs * slope).softmax(dim=1) @ matrix.T).max(dim=1)
    bins = _bins(expected.numpy(), (label == labels).numpy())
    return slope, cost, SHARES[int(np.argmin(costs))], bins


def _bins(expected: Vector, observed: NDArray[np.bool_]) -> tuple[Bin, ...]:
    order = np.argsort(expected, kind="stable")
    return tuple(
        Bin(float(expected[rows].mean()), float(observed[rows].mean()), len(rows))
        for rows in np.array_split(order, BINS)
        if len(rows)
    )


def _beliefs_of(evidence: Evidence, inputs: Inputs, rows: Rows) -> Tensor:
    """Return log-beliefs (n, K) of some rows, in order."""
    parts = []
    for at, chunk in zip(inputs.chunks(), evidence.log_beliefs(inputs), strict=True):
        first, last = np.searchsorted(rows, [at.start, at.stop])
        parts.append(chunk[torch.from_numpy(rows[first:last] - at.start)])
    return torch.cat(parts)
