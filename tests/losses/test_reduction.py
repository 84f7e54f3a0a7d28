from __future__ import annotations

import pytest
import torch

from unswayed import UsageError
from unswayed.losses.reduction import reduced

LOSSES = torch.tensor([1.0, 2.0, 6.0])


def test_none_mean_and_sum():
    assert torch.equal(reduced(LOSSES, "none"), LOSSES)
    assert reduced(LOSSES, "mean").item() == 3
    assert reduced(LOSSES, "sum").item() == 9


def test_anything_else_is_an_error():
    with pytest.raises(UsageError, match="reduction must be"):
        reduced(LOSSES, "average")
