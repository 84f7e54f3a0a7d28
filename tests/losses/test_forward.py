from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed.functional import forward_correction

T = np.array([[0.7, 0.3, 0, 0], [0, 1, 0, 0], [0.1, 0.1, 0.6, 0.2], [0, 0.4, 0, 0.6]])


def test_matches_the_formula(batch):
    logits, labels, _ = batch
    found = forward_correction(logits, labels, torch.from_numpy(T), reduction="none")
    expected = reference.forward_correction(logits.numpy(), labels.numpy(), T)
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


def test_with_the_identity_it_is_cross_entropy(batch):
    logits, labels, _ = batch
    found = forward_correction(logits, labels, torch.eye(4))
    assert torch.allclose(found, F.cross_entropy(logits, labels), atol=1e-12)


def test_a_label_that_cannot_be_is_finite():
    matrix = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    logits = torch.tensor([[3.0, 1.0]], requires_grad=True)
    loss = forward_correction(logits, torch.tensor([1]), matrix)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
