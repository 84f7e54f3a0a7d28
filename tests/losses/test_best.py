from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from unswayed.losses.best import Best


@pytest.fixture
def better():
    torch.manual_seed(1)
    return nn.Linear(3, 4)


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_takes_over_only_what_does_better(network, better):
    best = Best(network)
    assert best.offer(network, torch.tensor(0.5))
    assert not best.offer(better, torch.tensor(0.5))
    assert same(best.network, network)
    assert best.offer(better, torch.tensor(0.6))
    assert same(best.network, better)


def test_a_score_that_is_no_number_is_not_better(network, better):
    best = Best(network)
    assert not best.offer(better, torch.tensor(math.nan))


def test_without_a_score_the_newest_is_taken(network, better):
    best = Best(network)
    assert best.offer(better, None)
    assert same(best.network, better)


def test_is_a_frozen_copy(network, better):
    best = Best(network)
    best.offer(better, torch.tensor(1.0))
    with torch.no_grad():
        better.weight.zero_()
    assert best.network.weight.abs().sum() > 0
    assert not any(p.requires_grad for p in best.parameters())


def test_gives_its_weights_back(network, better):
    best = Best(better)
    best.restore(network)
    assert same(network, better)
    assert network.weight.requires_grad


def test_survives_a_round_trip(network, better):
    best, resumed = Best(network), Best(network)
    best.offer(better, torch.tensor(0.7))
    resumed.load_state_dict(best.state_dict())
    assert same(resumed.network, better)
    assert not resumed.offer(network, torch.tensor(0.7))
