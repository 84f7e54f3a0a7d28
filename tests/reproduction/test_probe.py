from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reproduction.figures.probe import information_bits, probe, standardised


@pytest.fixture
def blobs():
    """Two classes that a line tells apart, in 20 dimensions, of which 18 are noise."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 2
    x = torch.randn(400, 20, generator=draw)
    x[:, 0] += 12 * y - 6
    return x, y.numpy()


def test_a_probe_recovers_what_features_tell_and_memorises_little(blobs):
    x, true = blobs
    given = true.copy()
    given[::5] = 1 - given[::5]
    seen = probe((x, given, true), (x, true), epochs=5, seed=0)
    assert len(seen) == 5
    assert seen[-1].test_accuracy > 0.98
    assert seen[-1].memorised < 0.05
    assert seen[-1].recovered == pytest.approx(1 - seen[-1].memorised)


def test_a_probe_with_more_features_than_samples_memorises():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(256, 500, generator=draw)
    true = np.arange(256) % 2
    given = true.copy()
    given[::4] = 1 - given[::4]
    seen = probe((x, given, true), (x, true), epochs=60, seed=0)
    assert seen[-1].memorised > 0.95


def test_information_is_a_bit_where_a_line_tells_two_classes_apart(blobs):
    x, y = blobs
    x, _ = standardised(x, x)
    assert 0.8 < information_bits(x, y, seed=0) <= 1.0 + 1e-6


def test_information_is_nothing_where_features_are_noise():
    x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
    y = np.random.default_rng(0).integers(0, 4, 2000)
    found = information_bits(x, y, seed=0)
    assert -0.05 < found < 0.02
    assert found < math.log2(4)


def test_what_is_known_already_is_no_information(blobs):
    """Features that tell the class alone know nothing of a wrong label, given the class."""
    true = np.arange(900) % 3
    given = (true + 1 + np.random.default_rng(0).integers(0, 2, 900)) % 3
    x = torch.nn.functional.one_hot(torch.from_numpy(true)).float()
    assert information_bits(x, given, seed=0) > 0.4  # it is not the class that was memorised
    assert abs(information_bits(x, given, known=true, seed=0)) < 0.02
    memory = torch.nn.functional.one_hot(torch.from_numpy(given)).float()
    memory, _ = standardised(memory, memory)
    assert information_bits(memory, given, known=true, seed=0) > 0.8  # of the one bit there is


def test_information_does_not_mind_labels_that_never_occur(blobs):
    x, y = blobs
    assert information_bits(x, y, seed=0) == pytest.approx(information_bits(x, 7 * y, seed=0))


def test_features_are_brought_to_one_scale(blobs):
    x, _ = blobs
    x[:, 3] = 5.0  # a dead feature stays finite
    train, test = standardised(x, 2 * x)
    assert torch.allclose(train[:, 0].std(), torch.tensor(1.0), atol=1e-5)
    assert train.isfinite().all()
    assert test.isfinite().all()
