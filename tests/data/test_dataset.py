from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import Dataset, UsageError
from unswayed.data import stratified_split
from unswayed.data.dataset import balanced
from unswayed.randomness import keys_of

IMAGES = np.zeros((4, 5, 6), np.uint8)
LABELS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize(
    ("shape", "channels"), [((4, 5, 6), 1), ((4, 5, 6, 1), 1), ((4, 5, 6, 3), 3), ((4, 3, 5, 6), 3)]
)
def test_arrays_of_any_usual_layout(shape, channels):
    data = Dataset.from_arrays(np.zeros(shape, np.uint8), LABELS)
    assert tuple(data.images.shape) == (4, channels, 5, 6)


@pytest.mark.parametrize(
    ("images", "labels", "options", "message"),
    [
        (IMAGES[:0], LABELS[:0], {}, "empty"),
        (IMAGES, LABELS * 0, {}, "one class only"),
        (IMAGES, LABELS + 1, {"classes": ["a", "b"]}, r"label 2 is outside the range 0\.\.1"),
        (IMAGES, LABELS - 1, {}, "label -1 is outside"),
        (IMAGES, LABELS[:3], {}, "counts differ"),
        (IMAGES.astype(float), LABELS, {}, "uint8"),
        (IMAGES, LABELS / 2, {}, "integers"),
        (np.zeros((4, 2, 5, 6), np.uint8), LABELS, {}, "1 or 3 channels"),
        (IMAGES, LABELS, {"ids": ["a", "b", "c", "a"]}, "unique"),
        (IMAGES, LABELS, {"true": LABELS + 9}, "true label"),
    ],
)
def test_bad_input_is_said_plainly(images, labels, options, message):
    with pytest.raises(UsageError, match=message):
        Dataset.from_arrays(images, labels, **options)


def test_statistics_are_those_of_the_pixels(rng):
    images = rng.integers(0, 256, (7, 9, 8, 3), dtype=np.uint8)
    mean, std = Dataset.from_arrays(images, np.arange(7) % 2).channel_statistics()
    assert mean == pytest.approx((images / 255).mean(axis=(0, 1, 2)))
    assert std == pytest.approx((images / 255).std(axis=(0, 1, 2)))


def test_the_fingerprint_notices_every_change():
    base = Dataset.from_arrays(IMAGES, LABELS)
    pixel = IMAGES.copy()
    pixel[0, 0, 0] = 1
    others = [
        Dataset.from_arrays(pixel, LABELS),
        Dataset.from_arrays(IMAGES, LABELS[::-1].copy() * 0 + [0, 0, 1, 1]),
        Dataset.from_arrays(IMAGES, LABELS, ids=list("abcd")),
        Dataset.from_arrays(IMAGES, LABELS, classes=["x", "y"]),
        Dataset.from_arrays(IMAGES, LABELS, true=LABELS),
    ]
    prints = {data.fingerprint() for data in [base, *others]}
    assert len(prints) == 6
    assert base.fingerprint() == Dataset.from_arrays(IMAGES, LABELS).fingerprint()


def test_noisy_labels_remember_the_true_ones():
    data = Dataset.from_arrays(IMAGES, LABELS)
    noisy = data.with_given(1 - data.given)
    assert noisy.true.tolist() == LABELS.tolist()
    assert noisy.with_given(data.given).true.tolist() == LABELS.tolist()


@given(fraction=st.floats(0, 0.99), seed=st.integers(0, 10**6), classes=st.integers(1, 5))
def test_the_holdout_is_stratified_and_leaves_one_of_each_label(fraction, seed, classes):
    labels = np.random.default_rng(seed).integers(0, classes, 60)
    keys = keys_of([str(i) for i in range(60)])
    stay, out = stratified_split(labels, keys, fraction, seed, "test")
    assert sorted([*stay, *out]) == list(range(60))
    for label in np.unique(labels):
        count = (labels == label).sum()
        expected = min(round(fraction * count), count - 1)
        assert (labels[out] == label).sum() == expected


def test_a_subset_is_balanced_and_depends_on_its_seed_and_the_ids_alone():
    labels = np.repeat(np.arange(14), 10 * np.arange(15, 29))
    keys = keys_of([f"images/{row}.jpg" for row in range(len(labels))])
    names = tuple(map(str, range(14)))
    rows = balanced(labels, keys, 2048, 0, "test", names)
    assert len(set(rows.tolist())) == 2048
    assert np.bincount(labels[rows]).tolist() == [147] * 4 + [146] * 10
    assert (np.diff(rows) > 0).all()
    assert balanced(labels, keys, 2048, 0, "test", names).tolist() == rows.tolist()
    assert balanced(labels, keys, 2048, 1, "test", names).tolist() != rows.tolist()
    turned = balanced(labels[::-1], keys[::-1], 2048, 0, "test", names)
    assert set(keys[::-1][turned]) == set(keys[rows])


def test_the_clothing_subset_of_the_paper_has_1462_or_1463_images_of_each_class():
    labels = np.arange(14 * 2000) % 14
    keys = keys_of([str(row) for row in range(len(labels))])
    rows = balanced(labels, keys, 20_480, 0, "test", tuple(map(str, range(14))))
    assert set(np.bincount(labels[rows]).tolist()) == {1462, 1463}
    assert len(rows) == 20_480


def test_selected_rows_keep_everything_that_belongs_to_them():
    images = np.arange(5 * 4, dtype=np.uint8).reshape(5, 2, 2)
    data = Dataset.from_arrays(images, [0, 1, 0, 1, 0], true=[1, 1, 0, 0, 0], ids=list("abcde"))
    part = data.select(np.array([3, 1]))
    assert part.ids == ("d", "b")
    assert part.given.tolist() == [1, 1]
    assert part.true.tolist() == [0, 1]
    assert part.images[0].flatten().tolist() == [12, 13, 14, 15]
    assert part.keys.tolist() == data.keys[[3, 1]].tolist()
