"""What every regularizer promises."""

from __future__ import annotations

import pytest
import torch

from pairing import cost_of, weights_of
from unswayed.regularizers import REGULARIZERS
from unswayed.types import Pairs


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
