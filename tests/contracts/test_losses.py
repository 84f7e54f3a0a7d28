"""What every loss promises; a new file in losses/ is tested here without a word.

Most of it is checked in evaluation mode: in training mode a memory, or a counter of steps, would
move from one call to the next.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from unswayed.learners import Classifier
from unswayed.losses import LOSSES
from unswayed.models import MODELS
from unswayed.types import Overview

K, N = 5, 32
VARIANTS = [
    *((name, {}) for name in LOSSES.names()),
    ("apl", {"active": "nfl", "passive": "mae"}),
    ("apl", {"active": "ngce"}),
    ("backward", {"matrix": "known"}),
    ("bootstrap", {"mode": "hard"}),
    ("forward", {"matrix": "known"}),
    ("label_smoothing", {"r": -0.5}),
]
STOPS_GRADIENTS = {"bootstrap"}
"""Losses whose target follows the prediction but has no gradient; their own tests check it."""


def build(name, options):
    torch.manual_seed(0)
    backbone = MODELS.build("small", {"in_channels": 1}, width=2)
    facts = {
        "num_classes": K,
        "num_samples": N,
        "run_seed": 0,
        "known_matrix": 0.6 * np.eye(K) + 0.08,
        "classifier": Classifier(backbone, K, [0.5], [0.5]),
    }
    return LOSSES[name].build(options, facts), facts["classifier"]


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *map(str, v[1].values())]))
def variant(request):
    return request.param


@pytest.fixture
def loss(variant):
    return build(*variant)[0].eval()


@pytest.fixture
def batch(generator):
    logits = 3 * torch.randn(16, K, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, K, (16,), generator=generator)
    return logits, labels, torch.arange(16)


@pytest.fixture
def trained(variant, batch, generator):
    """A loss after four epochs of two steps, in training mode."""
    loss, classifier = build(*variant)
    images = torch.rand(N, 1, 8, 8, generator=generator)
    given = torch.randint(0, K, (N,), generator=generator)
    rows = torch.arange(N)

    def batches(network, rows):
        return network.predict_proba(images[rows]).split(7)

    for epoch in range(4):
        loss.before_epoch(Overview(epoch, 4, given, rows[:24], rows[24:], classifier, batches))
        for _ in range(2):
            loss(*batch)
    return loss


def state(loss):
    return {name: tensor.clone() for name, tensor in loss.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_one_number_per_sample(loss, batch):
    assert loss(*batch).shape == (16,)
    assert loss.train()(*batch).shape == (16,)


def test_follows_a_permutation_of_the_batch(loss, batch):
    order = torch.arange(15, -1, -1)
    assert torch.allclose(loss(*batch)[order], loss(*(part[order] for part in batch)))


def test_a_constant_added_to_all_logits_changes_nothing(loss, batch):
    logits, labels, index = batch
    assert torch.allclose(loss(logits, labels, index), loss(logits + 7, labels, index))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_finite_at_extreme_logits(loss, dtype, training):
    logits = torch.tensor([[1e4, -1e4, 0, 0, 0], [-1e4, 1e4, 0, 0, 0]], dtype=dtype)
    logits.requires_grad_()
    losses = loss.train(training)(logits, torch.tensor([0, 0]), torch.arange(2))
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()
    assert losses.dtype == dtype


def test_the_gradient_is_right_numerically(variant, loss, batch):
    if variant[0] in STOPS_GRADIENTS:
        pytest.skip("its target has no gradient")
    logits, labels, index = batch
    logits = logits[:4].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, labels[:4], index[:4]), logits)


def test_inputs_are_left_alone(loss, batch):
    before = [part.clone() for part in batch]
    loss.train()(*batch)
    assert all(torch.equal(a, b) for a, b in zip(before, batch, strict=True))


def test_works_without_the_index_where_it_keeps_no_memory(loss, batch):
    if not loss.has_memory:
        assert torch.equal(loss(*batch[:2]), loss(*batch))
        assert torch.isfinite(loss.train()(*batch[:2])).all()


def test_a_memory_moves_only_in_training_mode(trained, batch):
    before = state(trained)
    trained.eval()(*batch)
    assert same(state(trained), before)


def test_nothing_in_it_is_trained(trained):
    assert not [p for p in trained.parameters() if p.requires_grad]


def test_the_state_survives_a_round_trip(variant, trained, batch):
    resumed, _ = build(*variant)
    resumed.load_state_dict(state(trained))
    assert torch.equal(resumed(*batch), trained(*batch))
    assert same(state(resumed), state(trained))


def test_a_copy_goes_its_own_way(trained, batch):
    twin, before = copy.deepcopy(trained), state(trained)
    assert torch.equal(twin.eval()(*batch), trained.eval()(*batch))
    twin.train()(*batch)
    assert same(state(trained), before)
