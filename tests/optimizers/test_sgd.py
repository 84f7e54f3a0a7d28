from __future__ import annotations

import pytest
import torch
from torch import nn

from unswayed import UsageError
from unswayed.models import Backbone
from unswayed.optimizers import OPTIMIZERS
from unswayed.schedules import Ramp


@pytest.mark.parametrize("spare", [True, False])
def test_weight_decay_reaches_norms_and_biases_unless_told_otherwise(spare):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    sgd = OPTIMIZERS.build("sgd", weight_decay=0.1, decay_norms_and_biases=not spare)
    optimizer = sgd.build(net)
    decayed = sum(len(g["params"]) for g in optimizer.param_groups if g["weight_decay"] == 0.1)
    assert decayed == (1 if spare else 4)


def test_a_step_is_the_textbooks_sgd(generator):
    net = nn.Linear(3, 1, bias=False).double()
    w, v = net.weight.detach().clone(), torch.zeros(1, 3, dtype=torch.float64)
    optimizer = OPTIMIZERS.build("sgd", lr=0.1, momentum=0.9, weight_decay=0.01).build(net)
    for _ in range(4):
        x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        v = 0.9 * v + (x.sum(0, keepdim=True) + 0.01 * w)
        w = w - 0.1 * v
        assert torch.allclose(net.weight, w)


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
    sgd = OPTIMIZERS.build("sgd", weight_decay=0.1, bias_lr=Ramp(start=64, end=1, until=0.5))
    optimizer = sgd.build(net)
    for progress, times in ((0, 64), (0.25, 32.5), (0.5, 1), (1, 1)):
        sgd.set_rates(optimizer, 0.2, progress)
        rest, fast = optimizer.param_groups
        assert [p.shape for p in fast["params"]] == [(4,)] * 3
        assert [p.shape for p in rest["params"]] == [(4, 3), (2, 4), (2,), (2,), (2,)]
        assert (rest["lr"], rest["weight_decay"]) == (0.2, 0.1)
        assert fast["lr"] == pytest.approx(0.2 * times)
        assert fast["lr"] * fast["weight_decay"] == pytest.approx(0.2 * 0.1)


def test_norms_and_biases_that_are_spared_the_decay_are_never_given_any():
    sgd = OPTIMIZERS.build("sgd", weight_decay=0.1, bias_lr=4.0, decay_norms_and_biases=False)
    optimizer = sgd.build(nn.Sequential(Body(), nn.Linear(4, 2)))
    sgd.set_rates(optimizer, 0.2, 0.5)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0, 0.0]
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.2, 0.2, 0.8])


def test_nesterov_needs_momentum():
    with pytest.raises(UsageError, match=r"optimizer\.nesterov needs optimizer\.momentum above 0"):
        OPTIMIZERS.build("sgd", nesterov=True, momentum=0.0)
