from __future__ import annotations

import numpy as np
import pytest

from unswayed import UsageError
from unswayed.noise import NOISES
from unswayed.noise.labels import LabelFile, encode
from unswayed.randomness import keys_of

IDS = tuple(f"sample {i}" for i in range(50))
BEFORE = np.arange(50) % 3
GIVEN = (BEFORE + (np.arange(50) % 5 == 0)) % 3


@pytest.fixture(params=[".npz", ".csv"])
def path(request, tmp_path):
    labels = LabelFile(IDS, BEFORE, GIVEN, ("a", "b", "c"), "every fifth", 4, np.eye(3))
    found = tmp_path / f"labels{request.param}"
    found.write_bytes(encode(labels, request.param))
    return str(found)


def make(path, classes=3):
    return NOISES.build("file", {"num_classes": classes}, path=path)


def test_labels_are_matched_by_id(path):
    rows = np.array([7, 30, 2, 45])
    found = make(path).corrupt(BEFORE[rows], keys_of([IDS[i] for i in rows]), seed=99)
    assert found.tolist() == GIVEN[rows].tolist()


def test_the_convention_is_handed_on_with_the_seed(path):
    assert "every fifth" in make(path).convention
    assert "seed 4" in make(path).convention


def test_a_sample_that_is_not_in_the_file_is_an_error(path):
    keys = keys_of([*IDS[:3], "stranger"])
    with pytest.raises(UsageError, match=r"no label for 1 of the 4 samples, .* row 3"):
        make(path).corrupt(BEFORE[:4], keys, 0)


def test_labels_of_other_data_are_an_error(path):
    other = BEFORE.copy()
    other[[8, 9]] = (other[[8, 9]] + 1) % 3
    with pytest.raises(UsageError, match=r"other labels: 2 of the 50 .* row 8"):
        make(path).corrupt(other, keys_of(IDS), 0)


def test_another_number_of_classes_is_an_error(path):
    with pytest.raises(UsageError, match="labels of 3 classes; the data have 4"):
        make(path, classes=4)


def test_a_class_without_samples_keeps_its_labels_in_the_matrix(tmp_path):
    two = LabelFile(("x",), np.array([0]), np.array([1]), ("a", "b"), "one sample", 0, np.eye(2))
    path = tmp_path / "two.npz"
    path.write_bytes(encode(two, ".npz"))
    assert make(str(path), 2).matrix().tolist() == [[0, 1], [0, 1]]
