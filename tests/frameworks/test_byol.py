from __future__ import annotations

import copy

import pytest
import torch

from pairing import directions_of
from unswayed.frameworks import FRAMEWORKS
from unswayed.models import MODELS


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return MODELS.build("small", {"in_channels": 1}, width=4)


def byol(backbone, **options):
    facts = {"backbone": backbone, "feature_dim": backbone.feature_dim}
    return FRAMEWORKS["byol"].build({"projector_widths": (16, 12), **options}, facts)


def test_the_target_moves_by_exactly_the_momentum(backbone):
    framework = byol(backbone, momentum=0.9)
    before = copy.deepcopy(framework.target_backbone)
    with torch.no_grad():
        for p in backbone.parameters():
            p.add_(1)
    framework.before_step(backbone, 0.0)
    trios = zip(
        before.parameters(),
        framework.target_backbone.parameters(),
        backbone.parameters(),
        strict=True,
    )
    for old, new, online in trios:
        assert torch.allclose(new, 0.9 * old + 0.1 * online, atol=1e-6)


def test_the_target_starts_as_a_copy_and_is_not_trained(backbone):
    framework = byol(backbone)
    pairs = zip(backbone.parameters(), framework.target_backbone.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    target = [n for n, p in framework.named_parameters() if not p.requires_grad]
    assert {name.partition(".")[0] for name in target} == {"target_backbone", "target_projector"}


def test_batch_norm_buffers_of_the_target_are_its_own(backbone, generator):
    framework = byol(backbone)
    framework.before_step(backbone, 0.0)
    untouched = framework.target_backbone.norms[0].running_mean.clone()
    backbone(torch.randn(8, 1, 8, 8, generator=generator))  # moves the online statistics only
    framework.before_step(backbone, 0.0)
    assert torch.equal(framework.target_backbone.norms[0].running_mean, untouched)
    x1, x2 = torch.randn(2, 8, 1, 8, 8, generator=generator)
    directions_of(framework, backbone, x1, x2)
    assert not torch.equal(framework.target_backbone.norms[0].running_mean, untouched)


def test_momentum_may_be_a_schedule(backbone):
    framework = byol(backbone, momentum={"name": "cosine", "start": 0.9, "end": 1.0})
    with torch.no_grad():
        for p in backbone.parameters():
            p.add_(1)
    before = [p.clone() for p in framework.target_backbone.parameters()]
    framework.before_step(backbone, 1.0)
    assert all(
        torch.equal(a, b)
        for a, b in zip(before, framework.target_backbone.parameters(), strict=True)
    )


def test_one_sided_makes_one_direction_and_half_the_forwards(backbone, generator):
    framework = byol(backbone, symmetric=False)
    calls = []
    backbone.register_forward_hook(lambda *_: calls.append("online"))
    framework.target_backbone.register_forward_hook(lambda *_: calls.append("target"))
    x1, x2 = torch.randn(2, 8, 1, 8, 8, generator=generator)
    assert len(directions_of(framework, backbone, x1, x2)) == 1
    assert calls == ["online", "target"]
