"""Decisions correct P(wrong): against a literal transcription, at the limits, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from unswayed.review.recalibration import (
    CLASS,
    DOUBT,
    KNOTS,
    LEVEL,
    WALK,
    hats,
    recalibrate,
    shared_out,
)

CLASSES, MISTAKES = 3, 0.03
J = len(KNOTS)


def draw(seed, count=2000, shift=0.0, slope=1.0, classes=CLASSES):
    """Return P(wrong) of an audit, given labels, and which labels are really wrong."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(0.25, 1.0, count), 1e-5, 1 - 1e-5)
    wrong = rng.random(count) < expit(slope * logit(p) + shift)
    return p, rng.integers(0, classes, count), wrong


def say(rng, wrong, alarm, miss):
    """Return what a reviewer says of labels: two kinds of mistakes."""
    return np.where(wrong, rng.random(len(wrong)) >= miss, rng.random(len(wrong)) < alarm)


def literal_f(f, log_odds):
    """Return f by its definition: straight from knot to knot, constant beyond."""
    return np.interp(log_odds, KNOTS, f)


def moved_rate(f, p):
    """Return how far f moves the share of wrong labels, to first order."""
    return np.mean([q * (1 - q) * literal_f(f, logit(q)) for q in p])


def objective(parameters, p, given, rows, said, mistakes, rate_error):
    """Return the penalised negative log-likelihood, written down term by term."""
    f, theta, c = parameters[:J], parameters[J], parameters[J + 1 :]
    total = 0.0
    alarm = mistakes * np.exp(theta)
    miss = alarm / (len(c) - 1)
    for row, wrong in zip(rows, said, strict=True):
        odds = logit(p[row])
        q = expit(odds + literal_f(f, odds) + c[given[row]])
        mean = alarm * (1 - q) + (1 - miss) * q
        total -= np.log(mean if wrong else 1 - mean)
    total += 0.5 * (f[KNOTS == 0][0] / LEVEL) ** 2
    total += 0.5 * (moved_rate(f, p) / rate_error) ** 2
    for j in range(J - 1):
        far = abs(KNOTS[j] + KNOTS[j + 1]) / 2
        total += 0.5 * ((f[j + 1] - f[j]) / (WALK * (1 + far))) ** 2
    total += 0.5 * (theta / DOUBT) ** 2
    return total + 0.5 * np.sum((c / CLASS) ** 2)


def gradient(function, at, width=1e-5):
    """Return the numeric gradient."""
    steps = np.eye(len(at)) * width
    return np.array([(function(at + s) - function(at - s)) / (2 * width) for s in steps])


@pytest.fixture(scope="module")
def case():
    p, given, wrong = draw(1, count=400, shift=0.5)
    rng = np.random.default_rng(2)
    rows = rng.permutation(400)[:150]
    said = say(rng, wrong[rows], MISTAKES, MISTAKES / (CLASSES - 1))
    fit = recalibrate(p, given, CLASSES, rows, said, mistakes=MISTAKES, rate_error=0.03)
    return p, given, rows, said, fit


def test_the_fit_minimises_the_penalised_likelihood(case):
    p, given, rows, said, fit = case
    start = np.zeros(J + 1 + CLASSES)
    best = minimize(
        objective, start, args=(p, given, rows, said, MISTAKES, 0.03), method="BFGS", tol=1e-7
    )
    ours = np.concatenate([fit.f, [np.log(fit.mistakes / MISTAKES)], fit.c])
    assert ours == pytest.approx(best.x, abs=2e-3)
    q = expit(logit(p) + literal_f(best.x[:J], logit(p)) + best.x[J + 1 :][given])
    assert fit.p_wrong == pytest.approx(q, abs=1e-3)


def test_the_interval_is_that_of_the_whole_information_matrix(case):
    p, given, rows, _, fit = case
    ours = np.concatenate([fit.f, [np.log(fit.mistakes / MISTAKES)], fit.c])

    def mean_of(parameters, row):
        alarm = MISTAKES * np.exp(parameters[J])
        odds = logit(p[row])
        shift = literal_f(parameters[:J], odds) + parameters[J + 1 + given[row]]
        q = expit(odds + shift)
        return alarm * (1 - q) + (1 - alarm / (CLASSES - 1)) * q

    information = np.zeros((len(ours), len(ours)))
    for row in rows:
        slope = gradient(lambda at, row=row: mean_of(at, row), ours)
        mean = mean_of(ours, row)
        information += np.outer(slope, slope) / (mean * (1 - mean))
    information[J, J] += DOUBT**-2
    information[J + 1 :, J + 1 :] += np.eye(CLASSES) * CLASS**-2
    for j in range(J - 1):
        deviation = WALK * (1 + abs(KNOTS[j] + KNOTS[j + 1]) / 2)
        step = np.eye(len(ours))[j + 1] - np.eye(len(ours))[j]
        information += np.outer(step, step) / deviation**2
    middle = int(np.flatnonzero(KNOTS == 0)[0])
    information[middle, middle] += LEVEL**-2
    moves = gradient(lambda at: moved_rate(at[:J], p), ours) / 0.03
    information += np.outer(moves, moves)
    left = np.setdiff1d(np.arange(len(p)), rows)

    def total(parameters):
        odds = logit(p[left])
        shift = literal_f(parameters[:J], odds) + parameters[J + 1 :][given[left]]
        return expit(odds + shift).sum()

    slope = gradient(total, ours)
    error = np.sqrt(slope @ np.linalg.inv(information) @ slope) / total(ours)
    rng = np.random.default_rng(0)
    draws = rng.poisson(total(ours) * np.exp(error * rng.standard_normal(200_000)))
    said = fit.expected_wrong(left)
    assert said.value == pytest.approx(total(ours), rel=1e-6)
    assert (said.low, said.high) == pytest.approx(np.quantile(draws, (0.05, 0.95)), rel=0.04)


def test_the_observed_curvature_says_nearly_the_same_as_the_expected_one(case):
    p, given, rows, said, fit = case
    ours = np.concatenate([fit.f, [np.log(fit.mistakes / MISTAKES)], fit.c])
    arguments = (p, given, rows, said, MISTAKES, 0.03)
    hessian = np.array(
        [
            (
                gradient(lambda at: objective(at, *arguments), ours + step, 1e-4)
                - gradient(lambda at: objective(at, *arguments), ours - step, 1e-4)
            )
            / 2e-3
            for step in np.eye(len(ours)) * 1e-3
        ]
    )
    observed = np.sqrt(np.diag(np.linalg.inv(hessian)))[: J + 1]
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(observed, rel=0.25)


def test_hats_are_linear_from_knot_to_knot_and_constant_beyond():
    at = np.array([-9.0, -6.0, -2.25, 0.0, 0.5, 5.9, 6.0, 14.0])
    values = np.random.default_rng(3).normal(size=J)
    assert hats(at) @ values == pytest.approx(np.interp(at, KNOTS, values))
    assert hats(at).sum(axis=1) == pytest.approx(1)
    assert shared_out(at, at**2) == pytest.approx(at**2 @ hats(at))


def fit_none(p, given, rate_error):
    nobody = np.zeros(0, dtype=np.int64)
    none = np.zeros(0, dtype=bool)
    return recalibrate(p, given, CLASSES, nobody, none, mistakes=0.02, rate_error=rate_error)


def test_no_decision_leaves_the_audit_as_it_was():
    p, given, _ = draw(4)
    fit = fit_none(p, given, 0.02)
    assert fit.p_wrong == pytest.approx(p, abs=1e-9)
    assert fit.mistakes == pytest.approx(0.02)
    said = fit.expected_wrong(np.arange(len(p)))
    low, high = ((p.mean() + sign * 1.645 * 0.02) * len(p) for sign in (-1, 1))
    assert said.value == pytest.approx(p.sum())
    assert said.low == pytest.approx(low, rel=0.25)
    assert said.high == pytest.approx(high, rel=0.25)
    assert said.high - said.low >= 0.8 * (high - low)  # never much surer than the audit


@pytest.mark.parametrize("shift", [-1.5, 1.5])
def test_many_decisions_pull_the_rate_to_what_they_found(shift):
    p, given, wrong = draw(5, count=6000, shift=shift)
    rng = np.random.default_rng(6)
    rows = rng.permutation(6000)[:4000]
    said = say(rng, wrong[rows], 0.02, 0.01)
    fit = recalibrate(p, given, CLASSES, rows, said, mistakes=0.02, rate_error=0.02)
    left = np.setdiff1d(np.arange(6000), rows)
    real = wrong[left].sum()
    assert abs(p[left].sum() - real) > 0.25 * real
    assert fit.expected_wrong(left).value == pytest.approx(real, rel=0.12)


def test_a_class_of_its_own_rate_is_found():
    p, given, wrong = draw(7, count=4000)
    wrong = wrong & (given != 0)  # the audit is wrong about one class
    rows = np.random.default_rng(8).permutation(4000)[:2000]
    fit = recalibrate(p, given, CLASSES, rows, wrong[rows], mistakes=0.02, rate_error=0.02)
    assert fit.c[0] < -1
    assert fit.p_wrong[given == 0].mean() < 0.4 * p[given == 0].mean()


def test_right_labels_that_a_mistake_called_wrong_are_not_taken_for_wrong_ones():
    """Of 3,000 right labels, 3 % are called wrong, as often as the reviewer errs."""
    p, given = np.full(3000, 0.004), np.random.default_rng(9).integers(0, CLASSES, 3000)
    said = np.arange(3000) % 33 == 0
    rows = np.arange(3000)
    errs = recalibrate(p, given, CLASSES, rows, said, mistakes=0.03, rate_error=0.01)
    sure = recalibrate(p, given, CLASSES, rows, said, mistakes=1e-5, rate_error=0.01)
    assert errs.p_wrong.mean() < 0.01
    assert sure.p_wrong.mean() == pytest.approx(0.03, rel=0.1)


def test_that_all_of_the_worst_are_wrong_says_little_of_the_rest():
    """With ten classes an erring reviewer hardly ever keeps a wrong label."""
    p, given, _ = draw(10, count=20_000, classes=10)
    worst = np.flatnonzero(p > 0.98)
    said = np.ones(len(worst), dtype=bool)
    assert len(worst) > 50
    fit = recalibrate(p, given, 10, worst, said, mistakes=0.04, rate_error=0.02)
    middle = np.abs(logit(p)) < 1
    assert fit.p_wrong[middle].mean() == pytest.approx(p[middle].mean(), abs=0.08)


def test_a_more_suspicious_label_of_a_class_stays_more_suspicious():
    p, given, wrong = draw(11, slope=1.5, shift=-0.5)
    rows = np.argsort(-p)[:500]
    fit = recalibrate(p, given, CLASSES, rows, wrong[rows], mistakes=0.02, rate_error=0.02)
    for label in range(CLASSES):
        mine = np.flatnonzero(given == label)
        order = mine[np.argsort(p[mine])]
        assert (np.diff(fit.p_wrong[order]) >= -1e-12).all()


def test_where_nothing_is_left_the_interval_holds_zero():
    p, given, _ = draw(12)
    fit = fit_none(np.full_like(p, 1e-4), given, 1e-5)
    said = fit.expected_wrong(np.arange(100))
    assert said.value == pytest.approx(0.01)
    assert said.low == 0
    assert fit.expected_wrong(np.zeros(0, dtype=np.int64)) == (0, 0, 0)


def test_an_interval_never_holds_more_labels_than_there_are():
    p, given, _ = draw(13)
    fit = fit_none(np.full_like(p, 0.9), given, 0.3)
    assert fit.expected_wrong(np.arange(50)).high <= 50


@pytest.mark.parametrize("keeps", [False, True], ids=["any other class", "keeps what it sees"])
def test_nine_intervals_in_ten_hold_what_is_left_when_the_worst_are_reviewed_first(keeps):
    """The audit is off by a random shift and slope, as wide as it says that it may be."""
    held = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 14])
        count, classes, error = 4000, 10, 0.02
        shift = rng.normal() * 0.3
        p, given, wrong = draw([seed, 15], count, shift, 1 + 0.15 * rng.normal(), classes)
        rate_error = 0.3 * np.mean(p * (1 - p))
        rows = np.argsort(-p)[: rng.integers(100, 900)]
        below = np.flatnonzero(p < 0.2)
        rows = np.unique(np.append(rows, rng.choice(below, len(rows) // 30, replace=False)))
        said = say(rng, wrong[rows], error, error if keeps else error / (classes - 1))
        fit = recalibrate(p, given, classes, rows, said, mistakes=0.02, rate_error=rate_error)
        left = np.setdiff1d(np.arange(count), rows)
        low, high = fit.expected_wrong(left)[1:]
        held += low <= wrong[left].sum() <= high
    assert held >= 48  # 54 are expected
