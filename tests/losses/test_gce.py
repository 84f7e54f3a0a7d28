from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from reference import gce as literal
from unswayed import Recipe, UsageError
from unswayed.functional import gce_loss
from unswayed.losses import LOSSES
from unswayed.schedules import Ramp
from unswayed.types import Overview

LOGITS = torch.tensor([[2.0, 0, 0], [0, 1, 0]], dtype=torch.float64)
LABELS = torch.tensor([0, 2])


@pytest.mark.parametrize(
    ("q", "expected"), [(0.6, 0.6163865522), (0.7, 0.5834403573), (0.8, 0.5533391009)]
)
def test_known_vectors(q, expected):
    assert gce_loss(LOGITS, LABELS, q=q).item() == pytest.approx(expected, abs=1e-8)


@given(seed=st.integers(0, 2**32 - 1), q=st.floats(0.05, 1), scale=st.floats(0.1, 30))
def test_matches_the_formula(seed, q, scale):
    rng = np.random.default_rng(seed)
    logits, labels = scale * rng.normal(size=(6, 4)), rng.integers(0, 4, 6)
    found = gce_loss(torch.from_numpy(logits), torch.from_numpy(labels), q=q, reduction="none")
    assert found.numpy() == pytest.approx(literal(logits, labels, q), abs=1e-9)


def test_small_q_is_cross_entropy(generator):
    logits = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    labels = torch.arange(8) % 5
    found = gce_loss(logits, labels, q=1e-8, min_probability=0)
    assert found.item() == pytest.approx(F.cross_entropy(logits, labels).item(), abs=1e-6)


def test_q_one_is_mean_absolute_error(generator):
    logits = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    labels = torch.arange(8) % 5
    p = logits.softmax(1)
    absolute = (p - F.one_hot(labels, 5)).abs().sum(1) / 2  # half the L1 distance is 1 - p_y
    found = gce_loss(logits, labels, q=1.0, reduction="none", min_probability=0)
    assert found.numpy() == pytest.approx(absolute.numpy(), abs=1e-12)


def test_reductions_agree():
    each = gce_loss(LOGITS, LABELS, q=0.7, reduction="none")
    assert gce_loss(LOGITS, LABELS, q=0.7, reduction="sum").item() == pytest.approx(sum(each))
    assert gce_loss(LOGITS, LABELS, q=0.7, reduction="mean").item() == pytest.approx(sum(each) / 2)


def test_the_component_is_the_function():
    found = LOSSES.build("gce", q=0.6)(LOGITS, LABELS)
    assert torch.equal(found, gce_loss(LOGITS, LABELS, q=0.6, reduction="none"))


@pytest.mark.parametrize("q", [0.0, -1.0, 1.5])
def test_q_outside_its_range_is_an_error(q):
    with pytest.raises(UsageError, match="q must be in"):
        gce_loss(LOGITS, LABELS, q=q)
    with pytest.raises(UsageError, match="option 'q'"):
        LOSSES.build("gce", q=q)


def test_q_moves_with_the_epochs_and_stays_where_it_is_within_one():
    ramp = Ramp(start=0.1, end=0.7, since=0.25, until=0.75)
    loss, rows = LOSSES.build("gce", q=ramp), torch.arange(0)
    for epoch, q in enumerate((0.1, 0.1, 0.4, 0.7)):
        loss.before_epoch(Overview(epoch, 4, rows, rows, rows, loss, lambda *_: [rows]))
        found = loss(LOGITS, LABELS)
        assert torch.allclose(found, gce_loss(LOGITS, LABELS, q=q, reduction="none"))
    again = LOSSES.build("gce", q=ramp)
    again.load_state_dict(loss.state_dict())  # a resumed training goes on with the same q
    assert torch.equal(again(LOGITS, LABELS), found)


def test_a_recipe_may_give_a_schedule_of_q():
    recipe = Recipe.load("cpu/cifar10", "loss.q.name=ramp", "loss.q.start=0.05", "loss.q.end=0.7")
    assert recipe.build("loss").q == Ramp(start=0.05, end=0.7)
    with pytest.raises(UsageError, match="throughout"):
        Recipe.load("cpu/cifar10", "loss.q={name='ramp', start=0.0, end=0.7}")
