"""What every noise promises."""

from __future__ import annotations

import numpy as np
import pytest

from unswayed.noise import NOISES, realised
from unswayed.randomness import keys_of

K, N = 6, 30_000
KEYS = keys_of([str(i) for i in range(N)])
TRUE = np.arange(N, dtype=np.int64) % K


@pytest.fixture(params=NOISES.names())
def noise(request):
    return NOISES[request.param].build({}, {"num_classes": K})


def test_rows_of_the_matrix_sum_to_one(noise):
    assert noise.matrix().shape == (K, K)
    assert noise.matrix().sum(axis=1) == pytest.approx(np.ones(K))


def test_the_realised_matrix_is_the_declared_one(noise):
    found = realised(TRUE, noise.corrupt(TRUE, KEYS, 0), K).matrix
    expected = noise.matrix()
    sigma = np.sqrt(expected * (1 - expected) / (N / K))
    assert (np.abs(found - expected) <= 4.5 * sigma + 1e-12).all()


def test_same_seed_same_labels_other_seed_other_labels(noise):
    first = noise.corrupt(TRUE, KEYS, 1)
    assert np.array_equal(first, noise.corrupt(TRUE, KEYS, 1))
    if noise.matrix()[0, 0] < 1:
        assert not np.array_equal(first, noise.corrupt(TRUE, KEYS, 2))


def test_a_label_follows_its_sample_not_its_place(noise):
    order = np.argsort(KEYS)
    assert np.array_equal(
        noise.corrupt(TRUE, KEYS, 3)[order], noise.corrupt(TRUE[order], KEYS[order], 3)
    )


def test_the_input_is_left_alone_and_the_convention_is_said(noise):
    labels = TRUE.copy()
    noise.corrupt(labels, KEYS, 0)
    assert np.array_equal(labels, TRUE)
    assert len(noise.convention) > 10
