from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unswayed import UsageError
from unswayed.noise import NOISES, realised
from unswayed.noise.instance import GRID, shares
from unswayed.randomness import keys_of, normal, uniform

N, K = 3000, 4
KEYS = keys_of([str(i) for i in range(N)])
LABELS = np.arange(N, dtype=np.int64) % K
IMAGES = torch.randint(256, (N, 1, 3, 2), generator=torch.Generator().manual_seed(0)).byte()


def make(images=IMAGES, classes=K, **options):
    return NOISES.build("instance", {"num_classes": classes, "images": images}, **options)


def test_is_algorithm_two_of_the_paper_word_for_word():
    count, seed, rate = 40, 3, 0.5
    expected = []
    for i in range(count):
        x, y = IMAGES[i].flatten().tolist(), int(LABELS[i])
        attempt, q = 0, -1.0
        while not 0 <= q <= 1:
            q = rate + 0.1 * float(normal(seed, "noise/rate", KEYS[i], attempt)[0])
            attempt += 1
        scores = []
        for k in range(K):
            w = [normal(seed, "noise/direction", y, f, k)[0] for f in range(len(x))]
            scores.append(sum(a * round(b * GRID) for a, b in zip(x, w, strict=True)) / GRID)
        top = max(s for k, s in enumerate(scores) if k != y)
        e = [0.0 if k == y else math.exp(s - top) for k, s in enumerate(scores)]
        p = [1 - q if k == y else q * e[k] / sum(e) for k in range(K)]
        u = uniform(seed, "noise/label", KEYS[i])[0]
        expected.append(next(k for k in range(K) if u < sum(p[: k + 1])))
    noise = make(IMAGES[:count], rate=rate)
    assert noise.corrupt(LABELS[:count], KEYS[:count], seed).tolist() == expected


@given(rate=st.floats(0, 1), deviation=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_the_share_of_wrong_labels_is_the_mean_of_the_truncated_normal(rate, deviation, seed):
    noise = make(rate=rate, deviation=deviation)
    wrong = (noise.corrupt(LABELS, KEYS, seed) != LABELS).mean()
    mean = noise.mean_rate()
    assert abs(wrong - mean) <= 5 * math.sqrt(mean * (1 - mean) / N) + 1e-9


def test_the_mean_rate_against_a_numerical_integral():
    q = np.linspace(0, 1, 200_001)
    for rate in (0.0, 0.1, 0.4, 0.9):
        density = np.exp(-(((q - rate) / 0.1) ** 2) / 2)
        expected = (q * density).sum() / density.sum()
        assert make(rate=rate).mean_rate() == pytest.approx(expected, abs=1e-5)


def test_similar_images_of_a_class_get_the_same_wrong_label():
    base = torch.randint(256, (K, 3, 8, 8), generator=torch.Generator().manual_seed(1))
    jitter = torch.randint(3, (N, 3, 8, 8), generator=torch.Generator().manual_seed(2))
    images = (base[torch.from_numpy(LABELS)] + jitter).clamp(max=255).byte()
    found = realised(LABELS, make(images).corrupt(LABELS, KEYS, 0), K).matrix
    assert (np.sort(found, axis=1)[:, :2] == 0).all()  # all errors of a class go to one other


def test_the_expected_matrix_is_the_mean_over_seeds():
    noise = make(IMAGES[:200], rate=0.5)
    found = np.mean(
        [realised(LABELS[:200], noise.corrupt(LABELS[:200], KEYS[:200], s), K).matrix
         for s in range(120)],
        axis=0,
    )  # fmt: skip
    assert found == pytest.approx(noise.matrix(), abs=0.05)


def test_probabilities_stay_finite_for_any_scores():
    found = shares(np.array([[1e9, -1e9, 0.0], [-1e300, 0.0, 1e300]]), 0, np.array([0.3, 1.0]))
    assert found == pytest.approx(np.array([[0.7, 0, 0.3], [0, 0, 1.0]]))


def test_images_come_in_chunks_from_any_store():
    class Store:
        shape = tuple(IMAGES.shape)
        largest = 0

        def __getitem__(self, rows):
            self.largest = max(self.largest, len(rows))
            return IMAGES[rows]

    store = Store()
    many = np.zeros(N, dtype=np.int64)
    assert np.array_equal(make(store).corrupt(many, KEYS, 0), make().corrupt(many, KEYS, 0))
    assert store.largest == 1000


def test_a_count_that_differs_and_a_single_class_are_errors():
    with pytest.raises(UsageError, match="3000 images for 10 labels"):
        make().corrupt(LABELS[:10], KEYS[:10], 0)
    with pytest.raises(UsageError, match="two classes"):
        make(classes=1)
