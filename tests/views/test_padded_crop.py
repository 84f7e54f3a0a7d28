from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed import Recipe, UsageError
from unswayed.build import assemble
from unswayed.randomness import keys_of
from unswayed.views import VIEWS
from unswayed.views.policy import Policy


def test_pad_and_crop_moves_by_at_most_the_padding(generator):
    view = VIEWS.build("padded_crop", padding=2, flip=0.0)
    x = torch.zeros(200, 1, 9, 9)
    x[:, :, 4, 4] = 1
    seen = view(x, torch.rand(200, view.draws, generator=generator))
    where = seen[:, 0].flatten(1).argmax(dim=1)
    rows, cols = where // 9, where % 9
    assert set(rows.tolist()) == set(cols.tolist()) == {2, 3, 4, 5, 6}


def test_alternating_mirrors_every_image_in_every_other_epoch():
    view = VIEWS.build("padded_crop", padding=0, flip="alternate")
    policy = Policy(view, view, seed=1)
    images = torch.arange(6, dtype=torch.uint8).expand(400, 1, 6, 6)
    keys = keys_of([str(i) for i in range(400)])
    mirrored = torch.stack(
        [policy(images, keys, epoch).weak[0][:, 0, 0, 0] > 0 for epoch in range(5)]
    )  # (epochs, images)
    assert (mirrored[1:] != mirrored[:-1]).all()
    assert 0.4 < mirrored[0].float().mean() < 0.6


def test_an_edge_can_be_reflected(generator):
    view = VIEWS.build("padded_crop", padding=2, flip=0.0, edge="reflect")
    x = torch.rand(60, 3, 8, 8, generator=generator)
    u = torch.rand(60, view.draws, generator=generator)
    offsets = (u[:, 1:3] * 5).long()
    for image, seen, (top, left) in zip(x, view(x, u), offsets.tolist(), strict=True):
        padded = np.pad(image.numpy(), ((0, 0), (2, 2), (2, 2)), mode="reflect")
        assert np.array_equal(seen.numpy(), padded[:, top : top + 8, left : left + 8])


def test_no_more_can_be_reflected_than_there_is(tiny):
    words = (
        "views.weak.name=padded_crop",
        "views.weak.edge=reflect",
        "data.size=8",
    )
    assemble(Recipe.from_dict(tiny.sections, *words, "views.weak.padding=7"))
    assemble(
        Recipe.from_dict(tiny.sections, *words, "views.weak.padding=8", "views.weak.edge=black")
    )
    with pytest.raises(UsageError, match=r"padding is 8.* only 7 to reflect"):
        assemble(Recipe.from_dict(tiny.sections, *words, "views.weak.padding=8"))
