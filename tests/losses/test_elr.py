from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.losses import LOSSES

FACTS = {"num_samples": 10, "num_classes": 4}


@pytest.fixture
def steps(generator):
    """Three batches that share some of their samples."""
    return [
        (
            2 * torch.randn(6, 4, generator=generator, dtype=torch.float64),
            torch.randint(0, 4, (6,), generator=generator),
            torch.randperm(10, generator=generator)[:6],
        )
        for _ in range(3)
    ]


def test_matches_the_formula_over_several_steps(steps):
    loss = LOSSES.build("elr", FACTS, beta=0.6, weight=2)
    found = [loss(*step) for step in steps][-1]
    plain = [tuple(part.numpy() for part in step) for step in steps]
    expected, targets = reference.elr(plain, 10, 4, beta=0.6, weight=2)
    assert found.numpy() == pytest.approx(expected, abs=1e-5)  # the memory is single precision
    assert loss.targets.values.numpy() == pytest.approx(targets, abs=1e-6)


def test_a_weight_of_zero_is_cross_entropy(steps):
    loss = LOSSES.build("elr", FACTS, weight=0)
    for logits, labels, index in steps:
        expected = F.cross_entropy(logits, labels, reduction="none")
        assert torch.allclose(loss(logits, labels, index), expected)


def test_the_gradient_is_right_where_the_memory_is_not_empty(steps):
    loss = LOSSES.build("elr", FACTS)
    for step in steps:
        loss(*step)
    loss.eval()
    logits, labels, index = steps[0]
    assert torch.autograd.gradcheck(lambda x: loss(x, labels, index), logits.requires_grad_())


def test_the_memory_survives_a_round_trip(steps):
    loss, resumed = LOSSES.build("elr", FACTS), LOSSES.build("elr", FACTS)
    for step in steps[:2]:
        loss(*step)
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(resumed(*steps[2]), loss(*steps[2]))
    assert torch.equal(resumed.targets.values, loss.targets.values)


def test_moves_only_the_targets_of_the_batch(steps):
    loss = LOSSES.build("elr", FACTS)
    loss(*steps[0])
    seen = loss.targets.values.sum(dim=1) > 0
    assert sorted(np.flatnonzero(seen.numpy())) == sorted(steps[0][2].tolist())


def test_finite_where_a_sample_is_certain_for_long():
    loss = LOSSES.build("elr", FACTS, beta=0.5)
    logits = torch.tensor([[1e4, 0.0, 0, 0]], requires_grad=True)
    for _ in range(60):
        losses = loss(logits, torch.tensor([0]), torch.tensor([3]))
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()


def test_without_an_index_it_cannot_train_and_evaluates_cross_entropy(steps):
    logits, labels, _ = steps[0]
    loss = LOSSES.build("elr", FACTS)
    with pytest.raises(UsageError, match="index"):
        loss(logits, labels)
    found = loss.eval()(logits, labels)
    assert torch.equal(found, F.cross_entropy(logits, labels, reduction="none"))
