from __future__ import annotations

import pytest
import torch
from torch import nn

from unswayed.types import Overview

N, D, K = 40, 3, 4


@pytest.fixture
def batch(generator):
    """Logits, labels and rows of eight samples."""
    logits = 2 * torch.randn(8, K, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, K, (8,), generator=generator)
    return logits, labels, torch.arange(8)


@pytest.fixture
def network():
    """A network small enough to know what it predicts."""
    torch.manual_seed(0)
    return nn.Linear(D, K)


@pytest.fixture
def overview(generator):
    """Return a function that makes the overview of an epoch, over forty samples."""
    x = 3 * torch.randn(N, D, generator=generator)
    given = torch.randint(0, K, (N,), generator=generator)

    def make(epoch, network, *, epochs=10, holdout=8):
        rows = torch.arange(N)
        return Overview(
            epoch,
            epochs,
            given,
            rows[: N - holdout],
            rows[N - holdout :],
            network,
            lambda net, rows: net(x[rows]).softmax(dim=1).detach().split(7),
        )

    return make
