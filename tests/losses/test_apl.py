from __future__ import annotations

import itertools
import math

import pytest
import torch

import reference
from unswayed import UsageError
from unswayed.functional import (
    mae_loss,
    normalized_ce,
    normalized_focal,
    normalized_gce,
    rce_loss,
)
from unswayed.losses import LOSSES

TERMS = {
    "nce": lambda p: -math.log(p),
    "nfl": lambda p: -((1 - p) ** 0.5) * math.log(p),
    "ngce": lambda p: (1 - p**0.7) / 0.7,
}
PAIRS = list(itertools.product(TERMS, ["mae", "rce"]))


@pytest.mark.parametrize(("active", "passive"), PAIRS)
def test_matches_the_formula(batch, active, passive):
    logits, labels, _ = batch
    a, y = logits.numpy(), labels.numpy()
    resists = {"mae": reference.mae, "rce": reference.rce}[passive]
    expected = 3 * reference.normalised(a, y, TERMS[active]) + 0.2 * resists(a, y)
    loss = LOSSES.build("apl", active=active, passive=passive, alpha=3, beta=0.2)
    assert loss(logits, labels).numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("normalized", [normalized_ce, normalized_focal, normalized_gce])
def test_normalised_losses_sum_to_one_over_all_labels(batch, normalized):
    logits, _, _ = batch
    every = [normalized(logits, torch.full((8,), k), reduction="none") for k in range(4)]
    assert torch.allclose(sum(every), torch.ones(8, dtype=torch.float64))


@pytest.mark.parametrize(("active", "passive"), PAIRS)
def test_is_symmetric(batch, active, passive):
    loss = LOSSES.build("apl", active=active, passive=passive)
    total = sum(loss(batch[0], torch.full((8,), k)) for k in range(4))
    assert torch.allclose(total, total[:1].expand(8))


def test_alpha_and_beta_weigh_the_two_parts(batch):
    logits, labels, _ = batch
    active = LOSSES.build("apl", alpha=2, beta=0)(logits, labels)
    passive = LOSSES.build("apl", alpha=0, beta=2)(logits, labels)
    assert torch.allclose(active, 2 * normalized_ce(logits, labels, reduction="none"))
    assert torch.allclose(passive, 2 * rce_loss(logits, labels, reduction="none"))


def test_focal_and_generalized_forms_have_cross_entropy_as_their_limit(batch):
    logits, labels, _ = batch
    nce = normalized_ce(logits, labels)
    assert torch.allclose(normalized_focal(logits, labels, gamma=0), nce)
    assert torch.allclose(normalized_gce(logits, labels, q=1e-8), nce)


def test_ngce_at_q_one_is_mae_shared_among_the_other_classes(batch):
    logits, labels, _ = batch
    found = normalized_gce(logits, labels, q=1)
    assert torch.allclose(found, mae_loss(logits, labels) / 3)


@pytest.mark.parametrize("active", ["nfl", "ngce"])
def test_finite_where_the_network_is_certain(active):
    logits = torch.tensor([[90.0, 0, 0], [0, 90, 0], [0, 0, 0]], requires_grad=True)
    losses = LOSSES.build("apl", active=active)(logits, torch.tensor([0, 0, 0]))
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("option", [{"active": "ce"}, {"passive": "ce"}, {"q": 0}, {"gamma": -1}])
def test_an_option_outside_its_range_is_an_error(option):
    with pytest.raises(UsageError, match=f"option '{next(iter(option))}'"):
        LOSSES.build("apl", **option)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.5}, r"loss\.gamma belongs to nfl.*loss\.active=nfl"),
        ({"q": 0.7, "active": "nfl"}, r"loss\.q belongs to ngce.*loss\.active=ngce"),
        ({"log_zero": -4.0, "passive": "mae"}, r"loss\.log_zero belongs to rce.*loss\.passive=rce"),
    ],
)
def test_an_option_of_another_pair_is_an_error(options, message):
    with pytest.raises(UsageError, match=message):
        LOSSES.build("apl", **options)
