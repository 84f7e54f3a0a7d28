from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.functional import backward_correction
from unswayed.losses import LOSSES
from unswayed.losses.backward import LARGEST_CONDITION, invertible

T = np.array([[0.7, 0.3, 0, 0], [0, 1, 0, 0], [0.1, 0.1, 0.6, 0.2], [0, 0.4, 0, 0.6]])
SINGULAR = np.full((4, 4), 0.25)


def test_matches_the_formula(batch):
    logits, labels, _ = batch
    found = backward_correction(logits, labels, torch.from_numpy(T), reduction="none")
    expected = reference.backward_correction(logits.numpy(), labels.numpy(), T)
    assert found.numpy() == pytest.approx(expected, abs=1e-11)


def test_with_the_identity_it_is_cross_entropy(batch):
    logits, labels, _ = batch
    found = backward_correction(logits, labels, torch.eye(4))
    assert torch.allclose(found, F.cross_entropy(logits, labels))


def test_its_mean_over_the_noise_is_the_clean_cross_entropy(batch):
    logits, _, _ = batch
    matrix = torch.from_numpy(T)
    every = [
        backward_correction(logits, torch.full((8,), k), matrix, reduction="none") for k in range(4)
    ]
    noisy = torch.stack(every, dim=1)  # (B, K) loss of each given label
    assert torch.allclose(noisy @ matrix.T, -logits.log_softmax(dim=1))


@pytest.mark.parametrize("option", [SINGULAR.tolist(), "known"])
def test_a_given_matrix_that_cannot_be_inverted_is_an_error(option):
    facts = {"num_classes": 4, "known_matrix": SINGULAR}
    with pytest.raises(UsageError, match="condition number"):
        LOSSES.build("backward", facts, matrix=option)


def test_a_mixture_with_the_identity_makes_it_invertible():
    loss = LOSSES.build("backward", {"num_classes": 4}, matrix=SINGULAR.tolist(), identity=0.2)
    assert loss.matrix.numpy() == pytest.approx(0.8 * SINGULAR + 0.2 * np.eye(4))


def test_an_estimate_that_cannot_be_inverted_is_mixed_with_the_identity(network, overview):
    loss = LOSSES.build("backward", {"num_classes": 4, "classifier": network})
    with torch.no_grad():
        network.weight.zero_()  # it predicts the same of every sample: all rows are equal
    loss.before_epoch(overview(5, network))
    assert loss.estimated
    assert np.linalg.cond(loss.matrix.numpy()) < LARGEST_CONDITION


def test_a_good_matrix_is_left_alone_and_a_bad_one_changed_as_little_as_needed():
    assert np.array_equal(invertible(T), T)
    assert invertible(SINGULAR) == pytest.approx(0.95 * SINGULAR + 0.05 * np.eye(4))
