"""What blind re-checks measure: a reviewer's mistakes, and how much the audit overlooked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from unswayed.review import rechecks


def test_the_share_of_mistakes_solves_its_equation():
    said = rechecks.mistakes(9, 100)
    assert 2 * said.value * (1 - said.value) == pytest.approx(0.09)
    low, high = beta.ppf((0.05, 0.95), 9.5, 91.5)  # Jeffreys' interval of the share that differs
    for end, differing in ((said.low, low), (said.high, high)):
        assert 2 * end * (1 - end) == pytest.approx(differing, rel=0.03)


def test_nothing_repeated_says_nothing_of_mistakes():
    assert rechecks.mistakes(0, 0) is None
    assert rechecks.usual_mistakes(0, 0) == pytest.approx(0.02, abs=0.001)


def test_a_reviewer_who_always_differs_is_a_coin():
    assert rechecks.mistakes(10, 10).value == pytest.approx(0.5)
    assert rechecks.usual_mistakes(1000, 1000) == pytest.approx(0.5)


@pytest.mark.parametrize("differing", [0, 4, 40])
def test_many_repeats_outweigh_what_is_usual(differing):
    found = rechecks.usual_mistakes(differing * 50, 5000)
    assert found == pytest.approx(
        rechecks.mistakes(differing * 50, 5000).value, rel=0.01, abs=0.0005
    )


def test_more_that_differs_means_more_mistakes():
    found = [rechecks.usual_mistakes(differing, 60) for differing in range(60)]
    assert (np.diff(found) >= 0).all()


def test_recall_is_what_was_suspected_of_all_that_is_wrong():
    """A reviewer who hardly errs finds 30 wrong of 1,000, so 300 of 10,000 were overlooked."""
    said = rechecks.recall(900, 30, 1000, 10_000, 0, 100_000)
    assert said.value == pytest.approx(900 / 1200, abs=0.001)
    low, high = beta.ppf((0.05, 0.95), 30.5, 970.5)
    assert said.low == pytest.approx(900 / (900 + 10_000 * high), rel=0.01)
    assert said.high == pytest.approx(900 / (900 + 10_000 * low), rel=0.01)


def test_labels_that_a_mistake_called_wrong_were_not_overlooked():
    """Who errs in 2 % of the cases calls 2 % of the right labels wrong."""
    repeats = 10_000
    differing = round(2 * 0.02 * 0.98 * repeats)
    said = rechecks.recall(900, 20, 1000, 10_000, differing, repeats)
    assert said.value == pytest.approx(1, abs=0.01)
    assert said.low < 0.95


def test_what_was_decided_without_a_check_counts_less_its_mistakes():
    repeats = 10_000
    differing = round(2 * 0.02 * 0.98 * repeats)
    said = rechecks.recall(900, 0, 1000, 1000, differing, repeats, (120, 1000))
    assert said.value == pytest.approx(900 / (900 + (120 - 20) / 0.96), abs=0.002)


def test_nothing_checked_says_nothing_of_recall():
    assert rechecks.recall(900, 0, 0, 10_000, 0, 0) is None


def answers(rng, wrong, classes, error):
    """Return the class that is said of each label: 0 is the given one, which is wrong or right."""
    true = np.where(wrong, 1, 0)
    errs = rng.random(len(wrong)) < error
    return np.where(errs, (true + rng.integers(1, classes, len(wrong))) % classes, true)


@pytest.mark.parametrize("error", [0.005, 0.02, 0.1])
def test_nine_intervals_in_ten_hold_the_share_of_mistakes(error):
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 1])
        wrong = rng.random(60) < 0.5
        differing = int((answers(rng, wrong, 10, error) != answers(rng, wrong, 10, error)).sum())
        said = rechecks.mistakes(differing, 60)
        held += said.low <= error <= said.high
    assert held >= 165  # 180 are expected; few mistakes make it one or the other


@pytest.mark.parametrize(("checked", "missed"), [(100, 0.01), (100, 0.05), (400, 0.02)])
def test_nine_intervals_in_ten_hold_recall(checked, missed):
    """The reviewer errs in 2 % of the cases, about as often as labels were overlooked."""
    held, found, unsuspected = 0, 900, 10_000
    real = found / (found + missed * unsuspected)
    for seed in range(200):
        rng = np.random.default_rng([seed, 2])
        wrong = rng.random(checked) < missed
        said_wrong = int((answers(rng, wrong, 10, 0.02) != 0).sum())
        again = rng.random(checked // 2) < 0.5
        pair = (answers(rng, again, 10, 0.02), answers(rng, again, 10, 0.02))
        differing = int((pair[0] != pair[1]).sum())
        said = rechecks.recall(found, said_wrong, checked, unsuspected, differing, checked // 2)
        held += said.low <= real <= said.high
    assert held >= 165
