from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import UsageError
from unswayed.noise import NOISES, realised
from unswayed.randomness import keys_of

N = 2000
KEYS = keys_of([str(i) for i in range(N)])


def make(classes, **options):
    return NOISES["symmetric"].build(options, {"num_classes": classes})


@given(rate=st.floats(0, 1), classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_the_exclusive_exact_rate_is_what_it_says(rate, classes, seed):
    labels = np.arange(N) % classes
    given_labels = make(classes, rate=rate).corrupt(labels, KEYS, seed)
    assert (given_labels != labels).sum() == int(rate * N)
    assert given_labels.min() >= 0
    assert given_labels.max() < classes


@given(rate=st.floats(0, 1), classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_the_inclusive_rate_counts_redrawn_labels(rate, classes, seed):
    labels = np.arange(N) % classes
    noise = make(classes, rate=rate, inclusive=True, exact=False)
    found = realised(labels, noise.corrupt(labels, KEYS, seed), classes).rate
    expected = rate * (classes - 1) / classes
    assert found == pytest.approx(expected, abs=5 * np.sqrt(0.25 / N))


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_outside_its_range_is_an_error(rate):
    with pytest.raises(UsageError, match="'rate'"):
        make(3, rate=rate)


def test_one_class_is_an_error():
    with pytest.raises(UsageError, match="two classes"):
        make(1)
