from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

from unswayed.errors import UsageError
from unswayed.models import Backbone
from unswayed.schedules import Ramp
from unswayed.training.optimizer import learning_rate, make_optimizer, set_rates
from unswayed.training.settings import Settings


def test_the_published_schedule_is_a_cosine_by_epoch():
    settings = Settings(epochs=550, lr=0.02, schedule_unit="epoch")
    for epoch in (0, 1, 137, 549):
        expected = 0.02 * 0.5 * (1 + math.cos(math.pi * epoch / 550))
        for step in (0, 100, 194):
            assert learning_rate(settings, epoch, step, 195) == pytest.approx(expected, rel=1e-12)


def test_by_step_it_falls_at_every_step_to_almost_nothing():
    settings = Settings(epochs=3, lr=1.0)
    rates = [learning_rate(settings, e, s, 10) for e in range(3) for s in range(10)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(0.5 * (1 + math.cos(math.pi * 29 / 30)))


def test_warm_up_rises_linearly_and_then_the_cosine_starts_at_the_peak():
    settings = Settings(epochs=5, lr=1.0, warmup_epochs=2)
    rates = [learning_rate(settings, e, s, 4) for e in range(5) for s in range(4)]
    assert rates[:8] == pytest.approx([(i + 1) / 8 for i in range(8)])
    assert rates[8] == 1.0
    assert rates[9] < 1.0


def test_constant_stays():
    assert learning_rate(Settings(schedule="constant", lr=0.3), 57, 1, 2) == 0.3


@pytest.mark.parametrize("spare", [True, False])
def test_weight_decay_reaches_norms_and_biases_unless_told_otherwise(spare):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    settings = Settings(weight_decay=0.1, decay_norms_and_biases=not spare)
    optimizer = make_optimizer(net, settings)
    decayed = sum(len(g["params"]) for g in optimizer.param_groups if g["weight_decay"] == 0.1)
    assert decayed == (1 if spare else 4)


def test_a_step_is_the_textbooks_sgd(generator):
    net = nn.Linear(3, 1, bias=False).double()
    w, v = net.weight.detach().clone(), torch.zeros(1, 3, dtype=torch.float64)
    optimizer = make_optimizer(net, Settings(lr=0.1, momentum=0.9, weight_decay=0.01))
    for _ in range(4):
        x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        v = 0.9 * v + (x.sum(0, keepdim=True) + 0.01 * w)
        w = w - 0.1 * v
        assert torch.allclose(net.weight, w)


def test_steps_drop_the_rate_at_shares_of_the_training():
    settings = Settings(epochs=120, lr=1.0, schedule="steps", milestones=(1 / 3, 2 / 3), gamma=0.1)
    rates = [learning_rate(settings, epoch, 0, 1) for epoch in (0, 39, 40, 79, 80, 119)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert learning_rate(settings, 0, 0, 1, epochs=1) == 1.0  # the first epoch is never dropped


def test_a_schedule_can_be_shorter_than_the_training():
    settings = Settings(epochs=10, lr=1.0)
    assert learning_rate(settings, 2, 0, 1, epochs=4) == pytest.approx(0.5)


def test_adam_takes_the_momentum_as_its_first_decay_rate():
    optimizer = make_optimizer(nn.Linear(2, 2), Settings(optimizer="adam", momentum=0.8))
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.999)


def test_a_triangle_rises_to_its_peak_and_falls_to_its_end():
    settings = Settings(epochs=10, lr=2.0, schedule="triangle", peak=0.2, ends=(0.5, 0.1))
    rates = [learning_rate(settings, e, s, 10) for e in range(10) for s in range(10)]
    assert rates[0] == 1.0
    assert max(rates) == rates[20] == pytest.approx(2.0)
    assert rates[10] == pytest.approx(1.5)
    assert rates[60] == pytest.approx(1.1)
    assert rates[-1] == pytest.approx(2.0 * (0.1 + 0.9 / 80))
    differences = [b - a for a, b in itertools.pairwise(rates)]
    assert differences[:20] == pytest.approx([0.05] * 20)
    assert differences[20:] == pytest.approx([-1.8 / 80] * 79)


def test_a_triangle_needs_no_warm_up():
    with pytest.raises(UsageError, match=r"train\.warmup_epochs.*train\.peak"):
        Settings(schedule="triangle", warmup_epochs=1)


class Body(Backbone):
    """A backbone with a norm."""

    feature_dim = 4

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))

    def forward(self, x):
        return self.layers(x)


def test_norms_and_biases_of_the_backbone_can_learn_faster_and_shrink_no_faster():
    net = nn.Sequential(Body(), nn.Linear(4, 2), nn.BatchNorm1d(2))
    settings = Settings(weight_decay=0.1, bias_lr=Ramp(start=64, end=1, until=0.5))
    optimizer = make_optimizer(net, settings)
    for progress, times in ((0, 64), (0.25, 32.5), (0.5, 1), (1, 1)):
        set_rates(optimizer, settings, 0.2, progress)
        rest, fast = optimizer.param_groups
        assert [p.shape for p in fast["params"]] == [(4,)] * 3
        assert [p.shape for p in rest["params"]] == [(4, 3), (2, 4), (2,), (2,), (2,)]
        assert (rest["lr"], rest["weight_decay"]) == (0.2, 0.1)
        assert fast["lr"] == pytest.approx(0.2 * times)
        assert fast["lr"] * fast["weight_decay"] == pytest.approx(0.2 * 0.1)


def test_norms_and_biases_that_are_spared_the_decay_are_never_given_any():
    settings = Settings(weight_decay=0.1, bias_lr=4.0, decay_norms_and_biases=False)
    optimizer = make_optimizer(nn.Sequential(Body(), nn.Linear(4, 2)), settings)
    set_rates(optimizer, settings, 0.2, 0.5)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0, 0.0]
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.2, 0.2, 0.8])


def test_filters_follow_the_schedule_or_have_their_own():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.Flatten(), nn.Linear(2, 2, bias=False))
    for filter_lr, expected in ((0.1, 0.05), (Ramp(start=0.2, end=0.0), 0.15)):
        settings = Settings(optimizer="muon", lr=0.4, filter_lr=filter_lr)
        optimizer = make_optimizer(net, settings)
        set_rates(optimizer, settings, 0.2, 0.25)
        weights, filters = optimizer.param_groups
        assert (weights["lr"], filters["lr"]) == (0.2, pytest.approx(expected))
