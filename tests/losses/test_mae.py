from __future__ import annotations

import pytest
import torch

from reference import mae as literal
from unswayed.functional import gce_loss, mae_loss
from unswayed.losses import LOSSES


def test_matches_the_formula(batch):
    logits, labels, _ = batch
    found = mae_loss(logits, labels, reduction="none")
    assert found.numpy() == pytest.approx(literal(logits.numpy(), labels.numpy()), abs=1e-12)


def test_is_generalized_cross_entropy_at_q_one(batch):
    logits, labels, _ = batch
    found = LOSSES.build("mae")(logits, labels)
    expected = gce_loss(logits, labels, q=1.0, reduction="none", min_probability=0)
    assert torch.allclose(found, expected)


def test_the_sum_over_all_labels_is_constant(batch):
    logits, _, _ = batch
    every = [mae_loss(logits, torch.full((8,), k), reduction="none") for k in range(4)]
    assert torch.allclose(sum(every), torch.full((8,), 3.0, dtype=torch.float64))


def test_reductions_agree(batch):
    logits, labels, _ = batch
    each = mae_loss(logits, labels, reduction="none")
    assert mae_loss(logits, labels).item() == pytest.approx(each.mean().item())
    assert mae_loss(logits, labels, reduction="sum").item() == pytest.approx(each.sum().item())
