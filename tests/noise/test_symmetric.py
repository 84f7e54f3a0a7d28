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
def test_per_class_the_rate_holds_in_every_class(rate, classes, seed):
    labels = np.arange(N) % classes
    wrong = make(classes, rate=rate, draw="per_class").corrupt(labels, KEYS, seed) != labels
    for k in range(classes):
        assert wrong[labels == k].sum() == int(rate * (labels == k).sum())


@given(rate=st.floats(0, 1), classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_the_inclusive_rate_counts_redrawn_labels(rate, classes, seed):
    labels = np.arange(N) % classes
    noise = make(classes, rate=rate, inclusive=True, draw="bernoulli")
    found = realised(labels, noise.corrupt(labels, KEYS, seed), classes).rate
    expected = rate * (classes - 1) / classes
    assert found == pytest.approx(expected, abs=5 * np.sqrt(0.25 / N))


def test_labels_drawn_by_sample_never_change():
    """The values are those of the definition, computed in Python's unbounded integers."""
    labels = np.arange(12) % 4
    given_labels = make(4, rate=0.5).corrupt(labels, KEYS[:12], 0)
    assert given_labels.tolist() == [0, 1, 0, 2, 3, 1, 1, 2, 0, 1, 3, 3]


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_outside_its_range_is_an_error(rate):
    with pytest.raises(UsageError, match="'rate'"):
        make(3, rate=rate)


def test_one_class_is_an_error():
    with pytest.raises(UsageError, match="two classes"):
        make(1)


def test_an_unknown_way_of_drawing_is_an_error_that_names_the_others():
    with pytest.raises(UsageError, match="'exact', 'per_class' or 'bernoulli'"):
        make(3, draw="all")
