from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.functional import rce_loss, sl_loss
from unswayed.losses import LOSSES


def test_matches_the_formula(batch):
    logits, labels, _ = batch
    ce = F.cross_entropy(logits, labels, reduction="none").numpy()
    expected = 0.3 * ce + 2 * reference.rce(logits.numpy(), labels.numpy())
    found = sl_loss(logits, labels, alpha=0.3, beta=2, reduction="none")
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


def test_without_the_reverse_term_it_is_cross_entropy(batch):
    logits, labels, _ = batch
    found = sl_loss(logits, labels, alpha=0.4, beta=0)
    assert found.item() == pytest.approx(0.4 * F.cross_entropy(logits, labels).item())


def test_reverse_cross_entropy_is_symmetric(batch):
    logits, _, _ = batch
    every = [rce_loss(logits, torch.full((8,), k), reduction="none") for k in range(4)]
    assert torch.allclose(sum(every), torch.full_like(every[0], -3 * math.log(1e-4)))


def test_only_the_product_of_beta_and_log_zero_matters(batch):
    logits, labels, _ = batch
    one = sl_loss(logits, labels, beta=1, log_zero=-4)
    assert torch.allclose(one, sl_loss(logits, labels, beta=0.5, log_zero=-8))


def test_the_component_is_the_function(batch):
    logits, labels, index = batch
    found = LOSSES.build("sl", alpha=6, beta=0.1, log_zero=-4)(logits, labels, index)
    expected = sl_loss(logits, labels, alpha=6, beta=0.1, log_zero=-4, reduction="none")
    assert torch.equal(found, expected)


@pytest.mark.parametrize("option", [{"alpha": -1}, {"beta": -1}, {"log_zero": 0}])
def test_an_option_outside_its_range_is_an_error(option):
    with pytest.raises(UsageError, match=f"option '{next(iter(option))}'"):
        LOSSES.build("sl", **option)
