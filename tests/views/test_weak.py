from __future__ import annotations

import torch

from unswayed.views import VIEWS


def test_pad_and_crop_moves_by_at_most_the_padding(generator):
    view = VIEWS.build("weak", crop="pad", padding=2, flip=0.0)
    x = torch.zeros(200, 1, 9, 9)
    x[:, :, 4, 4] = 1
    seen = view(x, torch.rand(200, view.draws, generator=generator))
    where = seen[:, 0].flatten(1).argmax(dim=1)
    rows, cols = where // 9, where % 9
    assert set(rows.tolist()) == set(cols.tolist()) == {2, 3, 4, 5, 6}


def test_without_flip_nothing_is_mirrored(generator):
    ramp = torch.linspace(0, 1, 16).expand(50, 1, 16, 16)
    view = VIEWS.build("weak", flip=0.0)
    seen = view(ramp, torch.rand(50, view.draws, generator=generator))
    assert (seen.diff(dim=3) >= -1e-5).all()
