"""What every regularizer promises."""

from __future__ import annotations

import pytest
import torch

from pairing import cost_of, weights_of
from unswayed.regularizers import REGULARIZERS
from unswayed.types import Beliefs, Pairs


@pytest.fixture(params=[name for name in REGULARIZERS.names() if name != "none"])
def regularizer(request):
    return REGULARIZERS.build(request.param)


@pytest.fixture
def batch(generator):
    q, z = torch.randn(2, 9, 6, generator=generator, dtype=torch.float64)
    p = (4 * torch.randn(9, 3, generator=generator, dtype=torch.float64)).softmax(1)
    return q, z, p, torch.randint(0, 3, (9,), generator=generator)


def test_rows_of_the_pair_weights_sum_to_one(regularizer, batch):
    _, _, p, labels = batch
    weights = weights_of(regularizer, p, labels, 0.3)
    assert weights.shape == (9, 9)
    assert (weights >= 0).all()
    assert torch.allclose(weights.sum(1), torch.ones(9, dtype=torch.float64))
    assert (weights.diagonal() > 0).all()


def test_does_not_depend_on_the_length_of_the_embeddings(regularizer, batch):
    q, z, p, labels = batch
    weights = weights_of(regularizer, p, labels, 0.3)
    scaled = cost_of(regularizer, [Pairs(3 * q, 0.2 * z)], weights)
    assert torch.allclose(scaled, cost_of(regularizer, [Pairs(q, z)], weights))


def test_follows_a_permutation_of_the_batch(regularizer, batch):
    def cost(q, z, p, labels):
        return cost_of(regularizer, [Pairs(q, z)], weights_of(regularizer, p, labels, 0.3))

    order = torch.arange(8, -1, -1)
    assert torch.allclose(cost(*batch), cost(*(part[order] for part in batch)))


def test_the_gradient_is_right_numerically(regularizer, batch):
    q, z, p, labels = batch
    weights = weights_of(regularizer, p, labels, 0.3)
    q = q.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: cost_of(regularizer, [Pairs(x, z)], weights), q)


def test_a_batch_of_one_attracts_its_own_other_view(regularizer):
    q = torch.tensor([[3.0, 4.0]])
    weights = weights_of(regularizer, torch.tensor([[0.5, 0.5]]), torch.tensor([0]), 0.0)
    assert cost_of(regularizer, [Pairs(q, q)], weights).item() == pytest.approx(-1.0)


@pytest.mark.parametrize("sizes", [(4, 5), (2, 3, 4)])
def test_rows_against_all_keys_are_parts_of_the_whole(regularizer, batch, sizes):
    """Processes that hold some rows each, and all keys, have the cost and gradient of one."""
    q, z, p, labels = batch
    whole_q = q.clone().requires_grad_()
    keys = Beliefs(p, labels)
    whole = cost_of(regularizer, [Pairs(whole_q, z)], weights_of(regularizer, p, labels, 0.3))
    whole.backward()
    parts, start = [], 0
    shared_q = q.clone().requires_grad_()
    for size in sizes:
        mine = slice(start, start + size)
        positive = torch.arange(start, start + size)
        rows = Beliefs(p[mine], labels[mine])
        weights = regularizer.pair_weights(rows, keys, positive, 0.3)
        assert weights.shape == (size, len(z))
        part = regularizer([Pairs(shared_q[mine], z)], weights, positive)
        parts.append(part * size / len(q))
        start += size
    torch.stack(parts).sum().backward()
    assert torch.stack(parts).sum().item() == pytest.approx(whole.item(), abs=1e-12)
    assert torch.allclose(shared_q.grad, whole_q.grad, atol=1e-12)
