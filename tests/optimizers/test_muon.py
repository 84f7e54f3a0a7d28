from __future__ import annotations

import pytest
import torch
from torch import nn

from unswayed import Recipe, UsageError
from unswayed.build import assemble
from unswayed.optimizers import OPTIMIZERS
from unswayed.optimizers.muon import OrthogonalSGD, orthogonal
from unswayed.schedules import Cosine, Ramp
from unswayed.training.optimization import Optimization
from unswayed.training.settings import Settings


@pytest.mark.parametrize("shape", [(16, 90), (90, 16), (24, 24)])
def test_singular_values_come_near_one_and_directions_stay(shape, generator):
    matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
    u, _, vh = torch.linalg.svd(matrix, full_matrices=False)
    found = orthogonal(matrix)
    inside = (u.T @ found @ vh.T).diagonal()
    assert torch.allclose(u @ torch.diag(inside) @ vh, found, atol=1e-9)
    assert inside.median() == pytest.approx(0.95, abs=0.25)
    assert inside.max() < 1.3
    assert torch.linalg.cond(found) < torch.linalg.cond(matrix)


def test_a_step_is_the_published_one_for_filters_and_sgd_for_the_rest(generator):
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(3, 2)).double()
    muon = OPTIMIZERS.build("muon", lr=0.1, filter_lr=0.2, momentum=0.9, weight_decay=0.01)
    optimizer = muon.build(net)
    assert isinstance(optimizer, OrthogonalSGD)
    muon.set_rates(optimizer, 0.05, 0.5)  # half of the peak, for both
    conv, linear = net[0].weight, net[2].weight
    w, v = conv.detach().clone(), torch.zeros_like(conv)
    rest = linear.detach().clone()
    moved = torch.zeros_like(rest)
    for _ in range(3):
        x = torch.randn(4, 2, 3, 3, generator=generator, dtype=torch.float64)
        optimizer.zero_grad()
        net(x).square().sum().backward()
        g, h = conv.grad.clone(), linear.grad.clone()
        optimizer.step()
        v = 0.6 * v + g
        w = w * 3**0.5 / w.norm()
        w = w - 0.1 * orthogonal((g + 0.6 * v).flatten(1)).view_as(w)
        moved = 0.9 * moved + h + 0.01 * rest
        rest = rest - 0.05 * moved
        assert torch.allclose(conv, w, atol=1e-12)
        assert torch.allclose(linear, rest, atol=1e-12)


class Small(nn.Sequential):
    """What an optimization asks of a learner."""

    restart = 0.0


def test_its_state_can_be_kept(generator):
    def make():
        torch.manual_seed(0)
        net = Small(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(3, 2))
        return net, Optimization(net, OPTIMIZERS.build("muon"), Cosine(), Settings(), 1)

    x = torch.randn(6, 4, 2, 3, 3, generator=generator)

    def go(net, optimization, batches):
        for batch in batches:
            optimization.zero_grad()
            net(batch).square().sum().backward()
            optimization.step(0, 0)

    whole, one = make(), make()
    go(*whole, x)
    go(*one, x[:3])
    second = make()
    second[0].load_state_dict(one[0].state_dict())
    second[1].load_state(one[1].state())
    go(*second, x[3:])
    for a, b in zip(whole[0].parameters(), second[0].parameters(), strict=True):
        assert torch.equal(a, b)


def test_it_learns_digits_in_three_epochs(tiny):
    words = ("method=ce", "model.name=fast", "model.width=8", "optimizer.name=muon")
    words += ("noise.name=none", "train.epochs=3", "optimizer.lr=0.2", "optimizer.momentum=0.85")
    words += ("optimizer.nesterov=true",)
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *words))
    *_, last = trainer.epochs()
    assert last.metrics.test_accuracy > 0.8


def test_filters_follow_the_schedule_or_have_their_own():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.Flatten(), nn.Linear(2, 2, bias=False))
    for filter_lr, expected in ((0.1, 0.05), (Ramp(start=0.2, end=0.0), 0.15)):
        muon = OPTIMIZERS.build("muon", lr=0.4, filter_lr=filter_lr)
        optimizer = muon.build(net)
        muon.set_rates(optimizer, 0.2, 0.25)
        weights, filters = optimizer.param_groups
        assert (weights["lr"], filters["lr"]) == (0.2, pytest.approx(expected))


def test_nesterov_needs_momentum_for_the_rest_too():
    with pytest.raises(UsageError, match=r"optimizer\.nesterov needs optimizer\.momentum"):
        OPTIMIZERS.build("muon", nesterov=True, momentum=0.0)
