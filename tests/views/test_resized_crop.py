from __future__ import annotations

import pytest
import torch

from unswayed import Recipe, UsageError
from unswayed.views import VIEWS


def test_without_flip_nothing_is_mirrored(generator):
    ramp = torch.linspace(0, 1, 16).expand(50, 1, 16, 16)
    view = VIEWS.build("resized_crop", flip=0.0)
    seen = view(ramp, torch.rand(50, view.draws, generator=generator))
    assert (seen.diff(dim=3) >= -1e-5).all()


def test_padding_is_no_option_of_a_resized_crop():
    with pytest.raises(UsageError, match=r"\[views\.weak\].* has no option 'padding'"):
        Recipe.load("digits", "views.weak.name=resized_crop", "views.weak.padding=2")


def test_the_old_name_of_the_crop_says_where_it_went():
    with pytest.raises(UsageError, match=r"has no option 'crop'; it moved to views\.weak\.name"):
        Recipe.load("safe", "data.name=digits", "views.weak.crop=pad")
