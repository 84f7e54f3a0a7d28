from __future__ import annotations

import math

import numpy as np
import pytest

from unswayed.randomness import (
    bits,
    key_of,
    keys_of,
    normal,
    permutation,
    torch_seed,
    uniform,
    uniform32,
)


def splitmix_chain(seed, purpose, *coordinates):
    """The same hash in Python's unbounded integers."""
    mask = 2**64 - 1

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    state = mix((seed + golden) & mask)
    for part in (key_of(purpose), *coordinates):
        state = mix(((state ^ part) * golden + golden) & mask)
    return state


def test_is_the_hash_it_says():
    found = bits(7, "view", 3, np.arange(5))
    assert [int(x) for x in found] == [splitmix_chain(7, "view", 3, i) for i in range(5)]


def test_bits_never_change():
    """A new value here would silently change every published number."""
    assert int(bits(0, "order", 1, 2)[0]) == 0x76FFE9208B4C6EAD
    assert key_of("digits/0001") == 0x858C0E49FBA76DAE


def test_uniform_numbers_are_uniform_and_uncorrelated():
    u = uniform(1, "test", np.arange(2000)[:, None], np.arange(50))
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    expected = u.size / 64
    assert ((counts - expected) ** 2 / expected).sum() < 110  # chi-squared, 63 degrees, p = 2e-4
    assert abs(np.corrcoef(u[:, 0], u[:, 1])[0, 1]) < 0.09
    assert abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 0.09


def test_single_precision_numbers_are_the_double_ones_cut_short():
    double, single = uniform(3, "x", np.arange(10_000)), uniform32(3, "x", np.arange(10_000))
    assert single.dtype == np.float32
    assert single.max() < 1
    assert (np.floor(double * 2**24) / 2**24 == single).all()


def test_normal_numbers_are_those_of_box_and_muller():
    for i, found in enumerate(normal(5, "x", np.arange(20))):
        u, v = ((splitmix_chain(5, "x", i, part) >> 11) / 2**53 for part in (0, 1))
        assert found == pytest.approx(math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v))


def test_normal_numbers_are_normal():
    drawn = np.sort(normal(1, "test", np.arange(500)[:, None], np.arange(80)).ravel())
    assert np.isfinite(drawn).all()
    cumulative = np.array([(1 + math.erf(x / math.sqrt(2))) / 2 for x in drawn])
    distance = np.abs(cumulative - (np.arange(drawn.size) + 0.5) / drawn.size).max()
    assert distance < 1.95 / math.sqrt(drawn.size)  # Kolmogorov and Smirnov, p = 1e-3


def test_a_permutation_depends_on_the_keys_alone():
    keys = keys_of([f"sample {i}" for i in range(100)])
    order = permutation(0, "order", keys, 4)
    assert sorted(order) == list(range(100))
    shuffled = np.random.default_rng(0).permutation(100)
    again = permutation(0, "order", keys[shuffled], 4)
    assert np.array_equal(keys[order], keys[shuffled][again])
    assert not np.array_equal(order, permutation(0, "order", keys, 5))


def test_purposes_and_seeds_give_other_numbers():
    seen = {torch_seed(seed, purpose) for seed in range(50) for purpose in ("a", "b")}
    assert len(seen) == 100
    assert all(0 <= value < 2**63 for value in seen)


def test_negative_and_huge_seeds_are_taken_modulo_two_to_the_64():
    assert bits(2**64 + 5, "x")[0] == bits(5, "x")[0]
    assert uniform(-1, "x")[0] == pytest.approx(uniform(2**64 - 1, "x")[0])
