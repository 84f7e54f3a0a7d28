from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairing import repulsion_of
from reference import nt_xent_denominator
from unswayed.frameworks import FRAMEWORKS
from unswayed.types import Pairs


def simclr(**options):
    return FRAMEWORKS["simclr"].build({"projector_widths": (4, 3), **options}, {"feature_dim": 5})


@given(seed=st.integers(0, 10**6), temperature=st.floats(0.1, 2))
def test_repulsion_is_the_denominator_of_nt_xent(seed, temperature):
    generator = torch.Generator().manual_seed(seed)
    u1, u2 = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    framework = simclr(temperature=temperature)
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    found = repulsion_of(framework, [Pairs(u1, u2), Pairs(u2, u1)], nothing)
    assert found.item() == pytest.approx(nt_xent_denominator(u1, u2, temperature), abs=1e-9)


def test_selected_pairs_leave_the_denominator_only_on_request(generator):
    u1, u2 = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    directions = [Pairs(u1, u2), Pairs(u2, u1)]
    selected = torch.eye(3, dtype=torch.bool)
    selected[0, 1] = selected[1, 0] = True
    kept = repulsion_of(simclr(), directions, selected)
    dropped = repulsion_of(simclr(drop_selected_negatives=True), directions, selected)
    u = torch.nn.functional.normalize(torch.cat([u1, u2]), dim=1)
    total = 0.0
    for a in range(6):
        others = [
            b for b in range(6) if a != b and not (a % 3 != b % 3 and {a % 3, b % 3} == {0, 1})
        ]
        total += torch.stack([(u[a] @ u[b] / 0.5).exp() for b in others]).sum().log()
    assert dropped.item() == pytest.approx(float(total) / 6)
    assert kept > dropped


def test_everything_selected_still_leaves_the_own_other_view(generator):
    u1, u2 = torch.randn(2, 3, 3, generator=generator)
    framework = simclr(drop_selected_negatives=True)
    directions = [Pairs(u1, u2), Pairs(u2, u1)]
    found = repulsion_of(framework, directions, torch.ones(3, 3, dtype=torch.bool))
    assert torch.isfinite(found)


@pytest.mark.parametrize("drop", [False, True])
def test_views_of_one_process_against_all_views_are_parts_of_the_whole(generator, drop):
    u1, u2 = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    framework = simclr(drop_selected_negatives=drop)
    selected = torch.rand(5, 5, generator=generator) > 0.5
    whole = repulsion_of(framework, [Pairs(u1, u2), Pairs(u2, u1)], selected)
    total = 0.0
    for mine in (slice(0, 2), slice(2, 5)):
        directions = [Pairs(u1[mine], u2), Pairs(u2[mine], u1)]
        positive = torch.arange(5)[mine]
        part = framework.repulsion(directions, selected[mine], positive)
        total += part.item() * len(positive) / 5
    assert total == pytest.approx(whole.item(), abs=1e-12)
