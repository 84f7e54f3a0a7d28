"""Parity with the generator of CTRR's published code.

Checksums for 50,000 samples, SHA-256: of the drawn labels as little-endian int16 (-1: untouched)
and of the asymmetric mask as uint8. Those of seed "2021" with rate 0.2, for 10 and 100 classes, and
of its mask were confirmed by running the authors' functions; the others by their procedure.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from unswayed import UsageError
from unswayed.noise import NOISES
from unswayed.noise.official import drawn, mask

N = 50_000
KEYS = np.zeros(N, dtype=np.uint64)  # the published generator knows no ids


def checksum(array):
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("classes", "seed", "rate", "expected"),
    [
        (10, "2021", 0.2, "e0e39bd0645a270d"),
        (10, "2021", 0.4, "c0350315471f56c2"),
        (10, "2021", 0.6, "0520669c6dd784e8"),
        (10, "2021", 0.8, "b5ddd625f676753c"),
        (10, "2021", 0.9, "1f57f5183064478d"),
        (10, "2022", 0.4, "8d622965528aa2c1"),
        (10, "2023", 0.4, "c68df9d590e1e1f3"),
        (100, "2021", 0.2, "b71a46a3aadbae8e"),
        (100, "2021", 0.4, "2ae9a8d7e3d31a21"),
    ],
)
def test_symmetric_labels_are_those_of_the_authors(classes, seed, rate, expected):
    labels = drawn(seed, N, rate, classes)
    assert checksum(labels.astype("<i2")) == expected
    true = np.arange(N) % classes
    options = {"rate": rate, "inclusive": True, "official_seed": seed}
    noise = NOISES.build("symmetric", {"num_classes": classes}, **options)
    assert np.array_equal(noise.corrupt(true, KEYS, 0), np.where(labels == -1, true, labels))


@pytest.mark.parametrize(
    ("seed", "expected"),
    [("2021", "3413311f317dcd29"), ("2022", "f1a604a5c827eb3a"), ("2023", "d22d9fe8d20b82df")],
)
def test_the_asymmetric_mask_is_that_of_the_authors(seed, expected):
    assert checksum(mask(seed, N, 0.4).astype(np.uint8)) == expected
    noise = NOISES.build("asymmetric", {"num_classes": 100}, official_seed=seed)
    given = noise.corrupt(np.zeros(N, dtype=np.int64), KEYS, 0)
    assert checksum(given.astype(np.uint8)) == expected  # all are of class 0; selected, of class 1


def test_a_small_case_by_hand():
    random.seed("7")
    order = list(range(10))
    random.shuffle(order)
    chosen = set(order[:5])
    expected = [random.randint(0, 2) if i in chosen else -1 for i in range(10)]
    assert drawn("7", 10, 0.5, 3).tolist() == expected


def test_the_state_of_the_global_generator_is_left_alone():
    random.seed(1)
    state = random.getstate()
    drawn("2021", 100, 0.4, 10)
    assert random.getstate() == state


def test_a_number_on_the_command_line_is_the_text_it_was_for_the_authors():
    by_text, by_number = (
        NOISES.build("symmetric", {"num_classes": 10}, inclusive=True, official_seed=seed)
        for seed in ("2021", 2021)
    )
    true = np.zeros(1000, dtype=np.int64)
    assert np.array_equal(by_text.corrupt(true, KEYS, 0), by_number.corrupt(true, KEYS, 0))
    assert checksum(drawn("2021", N, 0.4, 10).astype("<i2")) == "c0350315471f56c2"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("symmetric", {}),
        ("symmetric", {"inclusive": True, "draw": "bernoulli"}),
        ("symmetric", {"inclusive": True, "draw": "per_class"}),
        ("asymmetric", {"draw": "bernoulli"}),
        ("asymmetric", {"draw": "per_class"}),
    ],
)
def test_another_convention_cannot_have_the_official_seed(name, options):
    with pytest.raises(UsageError, match="official_seed"):
        NOISES.build(name, {"num_classes": 10}, official_seed="2021", **options)
