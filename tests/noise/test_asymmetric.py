from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import UsageError
from unswayed.noise import NOISES, realised
from unswayed.noise.asymmetric import targets
from unswayed.noise.superclasses import CIFAR100
from unswayed.randomness import keys_of

N = 3000
KEYS = keys_of([str(i) for i in range(N)])
CAT, DOG, DEER, HORSE, BIRD, AIRPLANE, TRUCK, AUTOMOBILE = 3, 5, 4, 7, 2, 0, 9, 1  # CIFAR-10


def make(classes, **options):
    return NOISES["asymmetric"].build(options, {"num_classes": classes})


def test_five_classes_of_cifar10_have_a_look_alike():
    found = targets("cifar10", 10)
    assert found[[CAT, DOG, DEER, BIRD, TRUCK]].tolist() == [DOG, CAT, HORSE, AIRPLANE, AUTOMOBILE]
    assert (found != np.arange(10)).sum() == 5


def test_the_next_class_wraps_around():
    assert targets("next", 4).tolist() == [1, 2, 3, 0]


def test_groups_of_five_are_consecutive_ids():
    assert targets("next_in_five", 10).tolist() == [1, 2, 3, 4, 0, 6, 7, 8, 9, 5]


def test_the_superclasses_are_those_of_the_published_files():
    """The checksum is of the coarse labels in the order of the fine ones, read from train.bin."""
    digest = hashlib.sha256(np.array(CIFAR100, dtype=np.uint8).tobytes()).hexdigest()
    assert digest[:16] == "ecf260ffe6b76db0"
    assert np.bincount(CIFAR100).tolist() == [5] * 20


def test_a_class_stays_in_its_superclass():
    found = targets("next_in_superclass", 100)
    # beaver 4, dolphin 30, otter 55, seal 72 and whale 95 are the aquatic mammals
    assert found[[4, 30, 55, 72, 95]].tolist() == [30, 55, 72, 95, 4]
    # maple 47, oak 52, palm 56, pine 59 and willow 96 are the trees
    assert found[[47, 52, 56, 59, 96]].tolist() == [52, 56, 59, 96, 47]
    assert sorted(found) == list(range(100))


@given(rate=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_labels_are_moved_by_the_map_and_no_further(rate, seed):
    labels = np.arange(N) % 10
    for draw in ("exact", "per_class", "bernoulli"):
        noise = make(10, map="cifar10", rate=rate, draw=draw)
        changed = noise.corrupt(labels, KEYS, seed)
        moved = changed != labels
        assert np.array_equal(changed[moved], targets("cifar10", 10)[labels[moved]])
        sigma = np.sqrt(rate * (1 - rate) / (N / 2)) / 2
        assert abs(moved.mean() - rate / 2) <= 4.5 * sigma + 5 / N


def test_a_share_of_every_class_is_exact_in_the_classes_that_move():
    labels = np.arange(N) % 10
    found = realised(
        labels, make(10, map="cifar10", draw="per_class").corrupt(labels, KEYS, 0), 10
    ).matrix
    assert found == pytest.approx(make(10, map="cifar10").matrix())
    assert found[2, 0] == pytest.approx(0.4)
    assert found[0, 0] == 1


@pytest.mark.parametrize(
    ("name", "classes"),
    [("cifar10", 100), ("next", 1), ("next_in_superclass", 10), ("next_in_five", 6)],
)
def test_a_map_for_other_classes_is_an_error(name, classes):
    with pytest.raises(UsageError, match=f"{name}.*needs.*the data have {classes}"):
        make(classes, map=name)


def test_an_unknown_map_is_an_error_that_lists_the_valid_ones():
    with pytest.raises(UsageError, match="next_in_five"):
        make(10, map="previous")
