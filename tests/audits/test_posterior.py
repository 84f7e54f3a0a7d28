"""P(true class | evidence, given label) against a literal transcription."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.audits.evidence import EVIDENCE, Inputs
from unswayed.audits.posterior import CAUTION, concentration, judge_by, noise_of, together

K = 3


def beliefs_of(inputs):
    """Classes are expected as often as they are given."""
    p = inputs.logits.softmax(dim=1).double().numpy()
    given = np.bincount(inputs.labels, minlength=K)
    scores = p * (given + 1) / (p.sum(axis=0) + 1)
    return np.log(scores / scores.sum(axis=1, keepdims=True))


@pytest.fixture
def case(rng):
    true = rng.integers(0, K, 900)
    logits = 3.0 * np.eye(K)[true] + rng.normal(size=(900, K))
    given = np.where(rng.random(900) < 0.2, (true + 1) % K, true)
    inputs = Inputs(given, K, torch.from_numpy(logits), None, np.zeros(900, bool))
    counts = np.zeros((K, K))
    np.add.at(counts, (given, logits.argmax(axis=1)), 1)
    return inputs, noise_of(counts, 0.2, np.bincount(given))


def test_the_posterior_is_belief_times_noise(case):
    inputs, noise = case
    found = judge_by(EVIDENCE.build("network"), inputs, noise, np.arange(len(inputs)))
    beliefs = beliefs_of(inputs)
    for row in range(0, 900, 90):
        given = inputs.labels[row]
        scores = [
            np.exp(found.slope * beliefs[row, j])
            * np.exp(float(noise.log_matrix[given, j])) ** noise.trust
            for j in range(K)
        ]
        others = [scores[j] if j != given else 0.0 for j in range(K)]
        assert found.suggested[row] == int(np.argmax(others))
        share = max(others) / sum(others)
        assert found.p_suggested[row] == pytest.approx(found.p_wrong[row] * share, rel=1e-4)
        # The offset of a class moves all its log-odds alike.
        found_odds = np.log(1 / found.p_wrong[row] - 1)
        odds = np.log(scores[given] / sum(others))
        same = np.flatnonzero(inputs.labels == given)[0]
        assert found_odds - odds == pytest.approx(_offset(found, inputs, noise, same), abs=1e-3)


def _offset(found, inputs, noise, row):
    beliefs = beliefs_of(inputs)[row]
    given = inputs.labels[row]
    scores = np.exp(found.slope * beliefs + noise.trust * noise.log_matrix[given].numpy())
    odds = np.log(scores[given] / (scores.sum() - scores[given]))
    return np.log(1 / found.p_wrong[row] - 1) - odds


def test_the_mean_is_the_rate_and_the_joint_adds_up(case):
    inputs, noise = case
    found = judge_by(EVIDENCE.build("network"), inputs, noise, np.arange(len(inputs)))
    assert found.p_wrong.mean() == pytest.approx(0.2, abs=1e-6)
    assert found.joint.sum() == pytest.approx(1)
    assert 1 - np.trace(found.joint) == pytest.approx(0.2, abs=1e-6)
    labelled = np.bincount(inputs.labels) / len(inputs)
    assert found.joint.sum(axis=1) == pytest.approx(labelled)
    assert (np.diff(found.p_top, axis=1) <= 0).all()
    assert found.p_top.sum(axis=1) == pytest.approx(np.ones(len(inputs)))


def test_the_slope_explains_labels_best(case):
    inputs, noise = case
    found = judge_by(EVIDENCE.build("network"), inputs, noise, np.arange(len(inputs)))
    beliefs, matrix = torch.from_numpy(beliefs_of(inputs)), noise.log_matrix.exp().double()

    def cost(slope):
        p = (slope * beliefs).softmax(dim=1)
        return float(-(p * matrix[inputs.given]).sum(dim=1).log().mean())

    fitted = found.slope / CAUTION
    assert cost(fitted) == pytest.approx(found.cost)
    assert cost(fitted) <= min(cost(0.9 * fitted), cost(1.1 * fitted))
    assert found.support == 1.0


def test_concentration_is_nought_for_any_class_and_one_for_a_single_one(rng):
    even = rng.poisson(40, (6, 6)).astype(float)
    np.fill_diagonal(even, 0)
    assert concentration(even) < 0.15
    single = np.zeros((6, 6))
    single[np.arange(6), (np.arange(6) + 1) % 6] = 20
    assert concentration(single) == pytest.approx(1)
    assert concentration(np.zeros((6, 6))) == 0
    assert concentration(np.zeros((2, 2))) == 1  # there is only one other class


def test_judgements_are_averaged(case):
    inputs, noise = case
    found = judge_by(EVIDENCE.build("network"), inputs, noise, np.arange(len(inputs)))
    doubled = found._replace(p_wrong=found.p_wrong / 2)
    both = together([found, doubled], inputs.labels)
    assert both.p_wrong == pytest.approx(0.75 * found.p_wrong)
    assert both.p_suggested == pytest.approx(0.75 * found.p_suggested)
    assert both.p_top.sum(axis=1) == pytest.approx(np.ones(len(inputs)))
