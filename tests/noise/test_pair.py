from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.noise import NOISES
from unswayed.randomness import keys_of

N = 2000
KEYS = keys_of([str(i) for i in range(N)])


@given(rate=st.floats(0, 1), classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_the_rate_is_the_share_of_wrong_labels(rate, classes, seed):
    labels = np.arange(N) % classes
    found = NOISES.build("pair", {"num_classes": classes}, rate=rate).corrupt(labels, KEYS, seed)
    moved = found != labels
    assert moved.sum() == int(rate * N)
    assert np.array_equal(found[moved], (labels[moved] + 1) % classes)


def test_the_matrix_is_that_of_the_paper():
    matrix = NOISES.build("pair", {"num_classes": 5}, rate=0.45).matrix()
    expected = 0.55 * np.eye(5)  # Co-teaching, figure 1
    for i in range(5):
        expected[i, (i + 1) % 5] = 0.45
    assert matrix == pytest.approx(expected)


@pytest.mark.parametrize("draw", ["exact", "per_class", "bernoulli"])
def test_is_the_asymmetric_noise_with_the_next_class(draw):
    labels = np.arange(N) % 7
    pair = NOISES.build("pair", {"num_classes": 7}, draw=draw)
    same = NOISES.build("asymmetric", {"num_classes": 7}, map="next", draw=draw)
    assert np.array_equal(pair.corrupt(labels, KEYS, 1), same.corrupt(labels, KEYS, 1))
    assert pair.convention == same.convention
