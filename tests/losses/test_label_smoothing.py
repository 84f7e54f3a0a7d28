from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.functional import label_smoothing_loss
from unswayed.losses import LOSSES


@pytest.mark.parametrize("r", [0.1, 0.4, -0.2, -3])
def test_matches_the_formula(batch, r):
    logits, labels, _ = batch
    targets = (1 - r) * np.eye(4)[labels.numpy()] + r / 4
    expected = reference.soft_cross_entropy(logits.numpy(), targets)
    found = label_smoothing_loss(logits, labels, r=r, reduction="none")
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


def test_positive_rates_agree_with_pytorch(batch):
    logits, labels, _ = batch
    expected = F.cross_entropy(logits, labels, label_smoothing=0.3)
    assert torch.allclose(label_smoothing_loss(logits, labels, r=0.3), expected)


def test_a_rate_of_zero_is_cross_entropy(batch):
    logits, labels, _ = batch
    found = label_smoothing_loss(logits, labels, r=0)
    assert torch.allclose(found, F.cross_entropy(logits, labels))


def test_is_cross_entropy_until_it_starts_and_remembers_that_it_did(batch, overview, network):
    logits, labels, _ = batch
    loss = LOSSES.build("label_smoothing", r=-0.2, start=0.3)
    loss.before_epoch(overview(2, network))
    assert torch.allclose(loss(logits, labels), F.cross_entropy(logits, labels, reduction="none"))
    loss.before_epoch(overview(3, network))
    resumed = LOSSES.build("label_smoothing", r=-0.2, start=0.3)
    resumed.load_state_dict(loss.state_dict())
    expected = label_smoothing_loss(logits, labels, r=-0.2, reduction="none")
    assert torch.allclose(resumed(logits, labels), expected)


@pytest.mark.parametrize("r", [1, -11])
def test_a_rate_outside_its_range_is_an_error(r):
    with pytest.raises(UsageError, match="option 'r'"):
        LOSSES.build("label_smoothing", r=r)
