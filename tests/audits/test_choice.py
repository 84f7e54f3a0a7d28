"""Which evidence is used."""

from __future__ import annotations

import numpy as np
import pytest

from unswayed.audits.choice import choose, expected_precision, qualities


def test_expected_precision_is_average_precision_if_odds_are_certain():
    wrong = np.array([1.0, 0.0, 1.0, 0.0])
    ranking = np.array([4.0, 3.0, 2.0, 1.0])
    assert expected_precision(wrong, ranking) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert expected_precision(wrong, wrong) == 1.0
    assert expected_precision(np.zeros(4), ranking) == 0.0


def test_who_agrees_with_nobody_is_passed_over(rng):
    truth = (rng.random(500) < 0.2).astype(float)
    good = {
        name: np.clip(truth + 0.2 * rng.normal(size=500), 0, 1) for name in ("heads", "network")
    }
    agreement = qualities({**good, "neighbours": rng.random(500)})
    assert agreement["neighbours"] < min(agreement["heads"], agreement["network"])
    assert "neighbours" not in choose(agreement, dict.fromkeys(agreement, 0.0))


def test_equals_are_used_together_and_of_two_the_one_that_explains_labels():
    three = {"network": 0.98, "heads": 0.979, "neighbours": 0.9}
    assert choose(three, dict.fromkeys(three, 0.0)) == ["network", "heads"]
    two = {"heads": 0.9, "neighbours": 0.95}
    assert choose(two, {"heads": 0.5, "neighbours": 0.6}) == ["heads"]
