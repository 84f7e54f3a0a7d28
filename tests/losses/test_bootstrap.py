from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.functional import bootstrap_loss
from unswayed.losses import LOSSES


def literal_targets(logits, labels, beta, mode):
    p = np.array([reference.softmax(a) for a in logits.numpy()])
    believed = p if mode == "soft" else np.eye(4)[p.argmax(axis=1)]
    return beta * np.eye(4)[labels.numpy()] + (1 - beta) * believed


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_matches_the_formula(batch, mode):
    logits, labels, _ = batch
    targets = literal_targets(logits, labels, 0.6, mode)
    found = bootstrap_loss(logits, labels, beta=0.6, mode=mode, reduction="none")
    expected = reference.soft_cross_entropy(logits.numpy(), targets)
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_the_gradient_does_not_flow_through_the_target(batch, mode):
    logits, labels, _ = batch
    logits.requires_grad_()
    LOSSES.build("bootstrap", beta=0.6, mode=mode)(logits, labels).sum().backward()
    targets = literal_targets(logits.detach(), labels, 0.6, mode)
    expected = logits.detach().softmax(dim=1).numpy() - targets  # the targets sum to one
    assert logits.grad.numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_beta_one_is_cross_entropy(batch, mode):
    logits, labels, _ = batch
    found = bootstrap_loss(logits, labels, beta=1, mode=mode)
    assert torch.allclose(found, F.cross_entropy(logits, labels))


def test_beta_and_mode_are_checked(batch):
    with pytest.raises(UsageError, match="mode must be"):
        bootstrap_loss(*batch[:2], mode="medium")
    with pytest.raises(UsageError, match="option 'beta'"):
        LOSSES.build("bootstrap", beta=1.1)
