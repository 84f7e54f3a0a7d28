"""What every noise promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.noise import NOISES, realised
from unswayed.noise.labels import LabelFile, encode
from unswayed.randomness import keys_of

K, N = 6, 30_000
IDS = tuple(str(i) for i in range(N))
KEYS = keys_of(IDS)
TRUE = np.arange(N, dtype=np.int64) % K
IMAGES = torch.randint(256, (N, 1, 3, 3), generator=torch.Generator().manual_seed(0)).byte()
MATRIX = np.full((K, K), 0.05) + 0.7 * np.eye(K)

VARIANTS = [
    *((name, {}) for name in NOISES.names() if name not in ("matrix", "file")),
    ("matrix", {"rows": MATRIX.tolist()}),
    ("file", {"path": "labels.npz"}),
    ("symmetric", {"inclusive": True, "draw": "bernoulli"}),
    ("symmetric", {"draw": "per_class"}),
    ("symmetric", {"inclusive": True, "official_seed": "2021"}),
    ("asymmetric", {"draw": "per_class"}),
    ("asymmetric", {"draw": "bernoulli"}),
    ("asymmetric", {"official_seed": "2021"}),
    ("pair", {"draw": "bernoulli"}),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    given = NOISES.build("symmetric", {"num_classes": K}).corrupt(TRUE, KEYS, 9)
    names = tuple("abcdef")
    labels = LabelFile(IDS, TRUE, given, names, "made for this test", 9, np.eye(K))
    path = tmp_path_factory.mktemp("noise") / "labels.npz"
    path.write_bytes(encode(labels, ".npz"))
    return str(path)


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *v[1]]))
def make(request, stored):
    """Return a function that builds the noise for images in some order."""
    name, options = request.param
    if name == "file":
        options = {"path": stored}
    return lambda images: NOISES[name].build(options, {"num_classes": K, "images": images})


@pytest.fixture
def noise(make):
    return make(IMAGES)


def test_every_registered_noise_is_covered():
    assert {name for name, _ in VARIANTS} == set(NOISES.names())


def test_rows_of_the_matrix_sum_to_one(noise):
    assert noise.matrix().shape == (K, K)
    assert noise.matrix().min() >= 0
    assert noise.matrix().sum(axis=1) == pytest.approx(np.ones(K))


def test_the_realised_matrix_is_the_declared_one(noise):
    found = realised(TRUE, noise.corrupt(TRUE, KEYS, 0), K).matrix
    expected = noise.matrix()
    sigma = np.sqrt(expected * (1 - expected) / (N / K))
    inside = np.abs(found - expected) <= 4.5 * sigma + 1e-12
    assert np.diag(inside).all()
    assert noise.by_image or inside.all()  # where pixels decide, it is the mean over seeds


def test_same_seed_same_labels_other_seed_other_labels(noise):
    first = noise.corrupt(TRUE, KEYS, 1)
    assert np.array_equal(first, noise.corrupt(TRUE, KEYS, 1))
    assert np.array_equal(first, noise.corrupt(TRUE, KEYS, 2)) == noise.fixed


def test_a_label_follows_its_sample_unless_the_noise_says_it_goes_by_position(make):
    order = np.argsort(KEYS)
    noise, reordered = make(IMAGES), make(IMAGES[order])
    follows = np.array_equal(
        noise.corrupt(TRUE, KEYS, 3)[order], reordered.corrupt(TRUE[order], KEYS[order], 3)
    )
    assert follows != noise.by_position
    assert ("by position" in noise.convention) == noise.by_position


def test_the_input_is_left_alone_and_the_convention_is_said(noise):
    labels = TRUE.copy()
    given = noise.corrupt(labels, KEYS, 0)
    assert np.array_equal(labels, TRUE)
    assert given.dtype == np.int64
    assert not np.shares_memory(given, labels)
    assert len(noise.convention) > 10
