from __future__ import annotations

import pytest
import torch
from torch import nn

from unswayed import Recipe, UsageError
from unswayed.optimizers import OPTIMIZERS


def test_its_decay_rates_are_its_own_options():
    optimizer = OPTIMIZERS.build("adam", lr=0.01, betas=(0.8, 0.99)).build(nn.Linear(2, 2))
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.99)
    assert optimizer.param_groups[0]["lr"] == 0.01
    default = OPTIMIZERS.build("adam").build(nn.Linear(2, 2))
    assert default.param_groups[0]["betas"] == (0.9, 0.999)


def test_nesterov_is_not_for_adam():
    with pytest.raises(UsageError, match="'adam' has no option 'nesterov'"):
        Recipe.load("digits", "optimizer.name=adam", "optimizer.nesterov=true")
