from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.noise.selection import select
from unswayed.randomness import keys_of

N = 3000
KEYS = keys_of([str(i) for i in range(N)])
LABELS = np.arange(N, dtype=np.int64) ** 2 % 7  # classes of unequal size


@given(rate=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_counts_are_what_each_draw_promises(rate, seed):
    rows = {d: select(d, LABELS, KEYS, rate, seed) for d in ("exact", "per_class", "bernoulli")}
    assert all(len(set(chosen.tolist())) == len(chosen) for chosen in rows.values())
    assert len(rows["exact"]) == int(rate * N)
    for label, size in zip(*np.unique(LABELS, return_counts=True), strict=True):
        assert (LABELS[rows["per_class"]] == label).sum() == int(rate * size)
    sigma = np.sqrt(N * rate * (1 - rate))
    assert abs(len(rows["bernoulli"]) - rate * N) <= 5 * sigma + 1e-9


@pytest.mark.parametrize("draw", ["exact", "per_class", "bernoulli"])
@given(seed=st.integers(0, 10**6))
def test_the_same_samples_are_selected_in_any_order(draw, seed):
    order = np.random.default_rng(seed).permutation(N)
    first = set(KEYS[select(draw, LABELS, KEYS, 0.3, seed)].tolist())
    again = set(KEYS[order][select(draw, LABELS[order], KEYS[order], 0.3, seed)].tolist())
    assert first == again


def test_no_samples_are_no_mistake():
    none = np.zeros(0, dtype=np.int64)
    for draw in ("exact", "per_class", "bernoulli"):
        assert len(select(draw, none, KEYS[:0], 0.5, 0)) == 0
