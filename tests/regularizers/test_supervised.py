from __future__ import annotations

import pytest
import torch

from pairing import cost_of, weights_of
from reference import ctrr as literal
from unswayed.regularizers import REGULARIZERS
from unswayed.types import Pairs


@pytest.mark.parametrize("form", ["inner", "log"])
def test_attracts_equal_labels_and_nothing_else(form, generator):
    q, z = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 2, 1, 0])
    regularizer = REGULARIZERS.build("supervised", form=form)
    weights = weights_of(regularizer, torch.rand(6, 3, dtype=torch.float64), labels, 0.0)
    found = cost_of(regularizer, [Pairs(q, z)], weights)
    one_hot = torch.eye(3, dtype=torch.float64)[labels]  # agreement is then label equality
    expected = literal(q.tolist(), z.tolist(), one_hot.tolist(), 0.5, form, "similarity", "hard")
    assert found.item() == pytest.approx(expected, abs=1e-12)
