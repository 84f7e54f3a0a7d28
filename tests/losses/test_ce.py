from __future__ import annotations

import math

import pytest
import torch

from unswayed.losses import LOSSES


def test_is_minus_the_log_of_the_given_class():
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    expected = [math.log(1 + 2 * math.exp(-2)), math.log(2 + math.e)]
    found = LOSSES.build("ce")(logits, torch.tensor([0, 2]))
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
