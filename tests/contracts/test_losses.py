"""What every loss promises; a new file in losses/ is tested here without a word."""

from __future__ import annotations

import pytest
import torch

from unswayed.losses import LOSSES

FACTS = {"num_classes": 5, "num_samples": 32}


@pytest.fixture(params=LOSSES.names())
def loss(request):
    return LOSSES[request.param].build({}, FACTS)


@pytest.fixture
def batch(generator):
    logits = 3 * torch.randn(16, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 5, (16,), generator=generator)
    return logits, labels, torch.arange(16)


def test_one_number_per_sample(loss, batch):
    assert loss(*batch).shape == (16,)


def test_follows_a_permutation_of_the_batch(loss, batch):
    order = torch.arange(15, -1, -1)
    assert torch.allclose(loss(*batch)[order], loss(*(part[order] for part in batch)))


def test_a_constant_added_to_all_logits_changes_nothing(loss, batch):
    logits, labels, index = batch
    assert torch.allclose(loss(logits, labels, index), loss(logits + 7, labels, index))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_finite_at_extreme_logits(loss, dtype):
    logits = torch.tensor([[1e4, -1e4, 0, 0, 0], [-1e4, 1e4, 0, 0, 0]], dtype=dtype)
    logits.requires_grad_()
    losses = loss(logits, torch.tensor([0, 0]), torch.arange(2))
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()
    assert losses.dtype == dtype


def test_the_gradient_is_right_numerically(loss, batch):
    logits, labels, index = batch
    logits = logits[:4].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, labels[:4], index[:4]), logits)


def test_inputs_are_left_alone(loss, batch):
    before = [part.clone() for part in batch]
    loss(*batch)
    assert all(torch.equal(a, b) for a, b in zip(before, batch, strict=True))


def test_works_without_the_index_where_it_keeps_no_memory(loss, batch):
    if not list(loss.buffers()):
        assert torch.equal(loss(*batch[:2]), loss(*batch))
