"""What every view promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.randomness import keys_of
from unswayed.views import VIEWS
from unswayed.views.policy import Policy

ALL = ("weak", "strong", "strong")
KEYS = keys_of([str(i) for i in range(12)])


@pytest.fixture(params=[*VIEWS.names(), "affine"])
def view(request):
    if request.param == "affine":
        return VIEWS["strong"].build({"colour": "affine", "blur": 0.5})
    options = {"blur": 0.5} if request.param == "strong" else {}
    return VIEWS[request.param].build(options)


@pytest.fixture(params=[1, 3])
def images(request, generator):
    return torch.randint(0, 256, (12, request.param, 10, 14), generator=generator).to(torch.uint8)


def test_shape_and_range_are_kept_and_the_input_left_alone(view, images):
    before = images.clone()
    views = Policy(view, view, seed=0)(images, KEYS, 0, ALL)
    for seen in (*views.weak, *views.strong):
        assert seen.shape == images.shape
        assert seen.min() >= 0
        assert seen.max() <= 1 + 1e-6
    assert torch.equal(images, before)


def test_what_happens_to_an_image_does_not_depend_on_its_batch(view, images):
    policy = Policy(view, view, seed=3)
    whole = policy(images, KEYS, 5, ALL)
    some = np.array([7, 2, 4])
    part = policy(images[some], KEYS[some], 5, ALL)
    for a, b in zip((*whole.weak, *whole.strong), (*part.weak, *part.strong), strict=True):
        assert torch.allclose(a[some], b, atol=1e-6)


def test_pieces_and_threads_change_no_bit(view, images, monkeypatch):
    policy = Policy(view, view, seed=3)
    whole = policy(images, KEYS, 5, ALL)
    monkeypatch.setattr("unswayed.views.policy.CHUNK", 5 * images[0].numel())
    pieces = policy(images, KEYS, 5, ALL)
    for a, b in zip((*whole.weak, *whole.strong), (*pieces.weak, *pieces.strong), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", [name for name in VIEWS.names() if name != "none"])
def test_seed_epoch_sample_and_view_all_matter(name, images):
    view = VIEWS.build(name)
    one = Policy(view, view, seed=0)(images, KEYS, 0, ALL)
    others = [
        one.strong[1],
        Policy(view, view, seed=1)(images, KEYS, 0, ALL).strong[0],
        Policy(view, view, seed=0)(images, KEYS, 1, ALL).strong[0],
        Policy(view, view, seed=0)(images, KEYS[::-1], 0, ALL).strong[0],
    ]
    assert all(not torch.equal(one.strong[0], other) for other in others)


def test_a_second_weak_view_is_another_one_and_changes_no_other(images):
    policy = Policy(VIEWS.build("resized_crop"), VIEWS.build("strong"), seed=0)
    views = policy(images, KEYS, 0, (*ALL, "weak"))
    alone = policy(images, KEYS, 0, ("weak", "weak"))
    assert torch.equal(views.weak[0], policy(images, KEYS, 0).weak[0])
    assert len(views.strong) == 2
    assert alone.strong == ()
    assert torch.equal(views.weak[1], alone.weak[1])
    assert not torch.equal(views.weak[1], views.weak[0])


def test_memory_that_is_given_back_is_used_again_and_changes_no_bit(view, images):
    policy = Policy(view, view, seed=0)
    fresh = policy(images, KEYS, 1, ALL)
    expected = [x.clone() for x in (*fresh.weak, *fresh.strong)]
    used = policy(images, KEYS, 0, ALL)
    places = {x.data_ptr() for x in (*used.weak, *used.strong)}
    policy.recycle(used)
    again = policy(images, KEYS, 1, ALL)
    found = (*again.weak, *again.strong)
    assert {x.data_ptr() for x in found} == places
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    policy.recycle(again)
    assert policy(images[:5], KEYS[:5], 1).weak[0].shape == images[:5].shape  # other sizes are new


def test_strong_views_can_do_without_a_weak_one(view, images):
    policy = Policy(view, view, seed=0)
    with_weak = policy(images, KEYS, 2, ALL)
    without = policy(images, KEYS, 2, ("strong", "strong"))
    assert without.weak == ()
    assert all(torch.equal(a, b) for a, b in zip(with_weak.strong, without.strong, strict=True))
    policy.recycle(without)
    assert len(policy.spare) == 2
