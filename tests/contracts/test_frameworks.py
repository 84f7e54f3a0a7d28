"""What every framework promises."""

from __future__ import annotations

import pytest
import torch

from pairing import directions_of
from unswayed.frameworks import FRAMEWORKS
from unswayed.models import MODELS

NAMES = [name for name in FRAMEWORKS.names() if name != "none"]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def parts(name, generator):
    torch.manual_seed(0)
    backbone = MODELS.build("small", {"in_channels": 1}, width=4)
    facts = {"backbone": backbone, "feature_dim": backbone.feature_dim}
    framework = FRAMEWORKS[name].build({"projector_widths": (16, 12)}, facts)
    x1, x2 = torch.randn(2, 8, 1, 8, 8, generator=generator)
    return framework, backbone, x1, x2


def test_queries_and_keys_have_one_shape(parts):
    framework, backbone, x1, x2 = parts
    directions = directions_of(framework, backbone, x1, x2)
    assert 1 <= len(directions) <= 2
    assert all(q.shape == z.shape == (8, 12) for q, z in directions)


def test_only_simclr_sends_gradients_through_its_keys(name, parts):
    framework, backbone, x1, x2 = parts
    keys_have_gradient = [
        key.requires_grad for _, key in directions_of(framework, backbone, x1, x2)
    ]
    assert keys_have_gradient == [name == "simclr"] * 2


def test_a_query_reaches_the_backbone(parts):
    framework, backbone, x1, x2 = parts
    directions_of(framework, backbone, x1, x2)[0].query.square().sum().backward()
    assert all(p.grad is not None for p in backbone.parameters())


def test_directions_are_each_others_mirror(parts):
    framework, backbone, x1, x2 = parts
    framework.eval()
    backbone.eval()
    there, back = directions_of(framework, backbone, x1, x2)
    swapped_there, swapped_back = directions_of(framework, backbone, x2, x1)
    assert torch.allclose(there.query, swapped_back.query)
    assert torch.allclose(back.key, swapped_there.key)


def test_the_state_survives_a_round_trip(parts):
    framework, backbone, x1, x2 = parts
    state = {k: v.clone() for k, v in framework.state_dict().items()}
    framework.before_step(backbone, 0.5)
    directions_of(framework, backbone, x1, x2)
    framework.load_state_dict(state)
    assert all(torch.equal(v, state[k]) for k, v in framework.state_dict().items())
