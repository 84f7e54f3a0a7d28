from __future__ import annotations

import numpy as np
import pytest

from unswayed.data import DATASETS


@pytest.mark.parametrize("size", [8, 16, 20])
def test_all_1797_digits_are_there_once(size):
    train, test = DATASETS.build("digits", size=size)
    assert len(train) + len(test) == 1797
    assert not set(train.ids) & set(test.ids)
    assert train.image_size == (size, size)
    assert train.num_classes == 10
    assert np.bincount(test.given).min() >= 50


def test_the_pixels_are_scikit_learns():
    from sklearn.datasets import load_digits

    raw = load_digits()
    train, _ = DATASETS.build("digits", size=8)
    row = int(train.ids[5].rpartition("/")[2])
    expected = np.round(raw.images[row] * 255 / 16)
    assert train.images[5, 0].numpy() == pytest.approx(expected, abs=1)
    assert train.given[5] == raw.target[row]
