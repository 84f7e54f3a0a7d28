from __future__ import annotations

import numpy as np
import pytest

from unswayed import UsageError
from unswayed.data import DATASETS

X, Y = np.zeros((6, 8, 8, 3), np.uint8), np.array([0, 1, 2, 0, 1, 2])


def save(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


def test_arrays_become_splits(tmp_path):
    path = save(tmp_path / "a.npz", train_x=X, train_y=Y, train_true=Y[::-1], test_x=X, test_y=Y)
    train, test = DATASETS.build("npz", path=path)
    assert train.channels == 3
    assert train.true.tolist() == [2, 1, 0, 2, 1, 0]
    assert test.given.tolist() == Y.tolist()


def test_class_names_and_a_missing_test_set(tmp_path):
    path = save(tmp_path / "a.npz", train_x=X, train_y=Y, classes=np.array(["a", "b", "c"]))
    train, test = DATASETS.build("npz", path=path)
    assert train.classes == ("a", "b", "c")
    assert test is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"train_x": X}, "no array 'train_y'"),
        ({"train_x": X, "train_y": Y, "tset_x": X}, "did you mean 'test_x'"),
        ({"train_x": X, "train_y": Y, "test_x": X}, "no test_y"),
        ({"train_x": X, "train_y": np.array([None] * 6)}, "plain arrays"),
        ({"train_x": X, "train_y": np.array(list("abcabc"))}, "vector of integers"),
        ({"train_x": X, "train_y": Y[:, None]}, "vector of integers"),
        ({"train_x": X, "train_y": Y / 1}, "vector of integers"),
        ({"train_x": X, "train_y": Y, "train_true": Y / 1}, "vector of integers"),
        ({"train_x": X, "train_y": Y, "train_true": Y[:, None]}, "vector of integers"),
        ({"train_x": np.array(3, np.uint8), "train_y": Y}, "uint8"),
        ({"train_x": X[:, :0], "train_y": Y}, "uint8"),
        ({"train_x": X, "train_y": Y, "classes": np.array("x")}, "outside the range"),
        ({"train_x": X, "train_y": Y, "test_x": X[:0], "test_y": Y[:0]}, "empty"),
    ],
)
def test_bad_files_are_said_plainly(tmp_path, arrays, message):
    with pytest.raises(UsageError, match=message):
        DATASETS.build("npz", path=save(tmp_path / "a.npz", **arrays))


def test_a_missing_or_damaged_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*b\.npz"):
        DATASETS.build("npz", path=str(tmp_path / "b.npz"))
    (tmp_path / "c.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(UsageError, match=r"c\.npz is not a readable"):
        DATASETS.build("npz", path=str(tmp_path / "c.npz"))
