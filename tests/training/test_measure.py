from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from unswayed import Dataset
from unswayed.training.measure import BATCH, accuracy, memorisation, predictions


class Brightness(nn.Module):
    """Says 1 for bright images; carries a parameter, so that it has a device."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        mean = x.mean(dim=(1, 2, 3)) * self.scale
        return torch.stack([0.5 - mean, mean - 0.5], dim=1)


def test_a_ragged_last_batch_counts_once():
    n = BATCH + 16
    images = np.zeros((n, 2, 2), np.uint8)
    images[-16:] = 255
    labels = (np.arange(n) >= n - 16).astype(int)
    labels[0] = 1  # one mistake among n
    data = Dataset.from_arrays(images, labels)
    found = accuracy(predictions(Brightness(), data), data.given)
    assert found == pytest.approx((n - 1) / n)


def test_memorisation_splits_the_wrongly_labelled():
    predicted, given = np.array([0, 1, 2, 1]), np.array([0, 1, 1, 0])
    found = memorisation(predicted, given, np.array([1, 2, 2, 2]))
    assert found == pytest.approx((0.5, 0.25, 0.25))


def test_training_mode_comes_back():
    net = Brightness().train()
    predictions(net, Dataset.from_arrays(np.zeros((2, 2, 2), np.uint8), np.array([0, 1])))
    assert net.training
