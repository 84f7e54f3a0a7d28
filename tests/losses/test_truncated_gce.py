from __future__ import annotations

import copy

import pytest
import torch

import reference
from unswayed import UsageError
from unswayed.functional import gce_loss
from unswayed.losses import LOSSES


@pytest.fixture
def make(network):
    def build(**options):
        return LOSSES.build("truncated_gce", {"classifier": network, "num_samples": 40}, **options)

    return build


def test_matches_the_formula(make, batch):
    logits, labels, index = batch
    loss = make(q=0.6, k=0.3)
    loss.kept.values[:4] = False
    each = reference.gce(logits.numpy(), labels.numpy(), 0.6, floor=0)
    expected = [(1 - 0.3**0.6) / 0.6] * 4 + each[4:].tolist()
    assert loss(logits, labels, index).tolist() == pytest.approx(expected, abs=1e-12)


def test_with_every_sample_kept_it_is_generalized_cross_entropy(make, batch):
    logits, labels, index = batch
    expected = gce_loss(logits, labels, reduction="none", min_probability=0)
    assert torch.equal(make()(logits, labels, index), expected)


def test_keeps_what_the_network_believes(make, overview, network):
    loss = make(k=0.4)
    now = overview(3, network)
    loss.before_epoch(now)
    p = now.look(network, now.rows)
    believed = p[torch.arange(32), now.given[:32]] > 0.4
    assert torch.equal(loss.kept.values[:32], believed)
    assert 0 < believed.sum() < 32
    assert loss.kept.values[32:].all()  # the hold-out is never learned from


def test_a_threshold_of_zero_prunes_nothing(make, overview, network):
    loss = make(k=0.0)
    loss.before_epoch(overview(3, network))
    assert loss.kept.values.all()


@pytest.mark.parametrize(("start", "first"), [(0.3, 3), (0.0, 1)])
def test_prunes_at_its_start_and_then_every_few_epochs(make, overview, network, start, first):
    loss = make(start=start, every=4, k=0.9)
    pruned = []
    for epoch in range(10):
        loss.kept.values.fill_(True)
        loss.before_epoch(overview(epoch, network))
        pruned += [epoch] * (not loss.kept.values.all())
    assert pruned == list(range(first, 10, 4))


def test_prunes_by_the_best_network_and_not_by_the_present_one(make, overview, network):
    good, bad = copy.deepcopy(network), copy.deepcopy(network)
    before = overview(1, good)
    guess = before.look(good, before.holdout).argmax(dim=1)
    before.given[before.holdout] = guess  # the good network is right on all of the hold-out
    with torch.no_grad():
        bad.weight.neg_()
    loss = make(k=0.4)
    loss.before_epoch(before)
    loss.before_epoch(overview(3, bad))
    p = before.look(good, before.rows)
    assert torch.equal(loss.kept.values[:32], p[torch.arange(32), before.given[:32]] > 0.4)


def test_without_a_hold_out_the_present_network_prunes(make, overview, network):
    other = copy.deepcopy(network)
    with torch.no_grad():
        other.weight.neg_()
    loss = make(k=0.4)
    loss.before_epoch(overview(1, network, holdout=0))
    now = overview(3, other, holdout=0)
    loss.before_epoch(now)
    assert torch.equal(
        loss.kept.values, now.look(other, now.rows)[torch.arange(40), now.given] > 0.4
    )


def test_where_nothing_is_kept_the_gradient_is_zero(make, batch):
    logits, labels, index = batch
    loss = make(k=0.5)
    loss.kept.values.fill_(False)
    logits = (1e4 * logits).requires_grad_()
    losses = loss(logits, labels, index)
    losses.mean().backward()
    assert losses.tolist() == pytest.approx([(1 - 0.5**0.7) / 0.7] * 8)
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_mask_and_best_network_survive_a_round_trip(make, overview, network):
    loss, resumed = make(k=0.4), make(k=0.4)
    loss.before_epoch(overview(3, network))
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(resumed.kept.values, loss.kept.values)
    assert torch.equal(resumed.best.score, loss.best.score)


def test_its_copy_of_the_network_is_not_trained(make):
    assert not [p for p in make().parameters() if p.requires_grad]


def test_without_an_index_it_cannot_train_and_evaluates_unpruned(make, batch):
    logits, labels, _ = batch
    loss = make()
    loss.kept.values.fill_(False)
    with pytest.raises(UsageError, match="index"):
        loss(logits, labels)
    expected = gce_loss(logits, labels, reduction="none", min_probability=0)
    assert torch.equal(loss.eval()(logits, labels), expected)


@pytest.mark.parametrize("option", [{"q": 0}, {"k": 1}, {"start": 2}, {"every": 0}])
def test_an_option_outside_its_range_is_an_error(make, option):
    with pytest.raises(UsageError, match=f"option '{next(iter(option))}'"):
        make(**option)
