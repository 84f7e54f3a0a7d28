from __future__ import annotations

import numpy as np
import pytest

import unswayed
from exports.examples import decide, digests, next_recipe, trained
from unswayed import UsageError


@pytest.fixture
def arrays(rng):
    images = rng.integers(0, 256, (20, 8, 8), dtype=np.uint8)
    return {
        "train_y": (np.arange(20) % 2).astype(np.int16),
        "train_x": images,
        "train_true": np.zeros(20, np.int8),
        "test_x": images[:3],
        "test_y": np.array([0, 1, 0]),
        "classes": np.array(["cat", "dog"]),
    }


def trained_on(tmp_path, arrays):
    np.savez(tmp_path / "mine.npz", **arrays)
    return trained(tmp_path / "run", "data.name=npz", f"data.path={tmp_path / 'mine.npz'}")


def test_the_same_arrays_with_corrected_labels(tmp_path, arrays):
    run = trained_on(tmp_path, arrays)
    source = (tmp_path / "mine.npz").read_bytes()
    decide(run, 0, "relabel", "dog")
    decide(run, 3, "remove")
    found = unswayed.export(run)
    assert found.path == run.path / "corrected.npz"
    kept = [row for row in range(20) if row != 3]
    with np.load(found.path) as new:
        assert new.files == list(arrays)
        for name, array in arrays.items():
            assert new[name].dtype == array.dtype
        labels = arrays["train_y"].copy()
        labels[0] = 1
        assert new["train_y"].tolist() == labels[kept].tolist()
        assert np.array_equal(new["train_x"], arrays["train_x"][kept])
        assert len(new["train_true"]) == 19
        assert np.array_equal(new["test_x"], arrays["test_x"])
    train, test = next_recipe(found).build("data")
    assert train.given.tolist() == labels[kept].tolist()
    assert test.fingerprint() == run.provenance.data.test_fingerprint
    before = digests(tmp_path)
    unswayed.export(run)
    assert digests(tmp_path) == before
    assert (tmp_path / "mine.npz").read_bytes() == source


def test_a_class_that_loses_all_its_samples_stays_a_class(tmp_path, arrays):
    labels = np.zeros(20, np.int64)
    labels[:10], labels[19] = 1, 2
    run = trained_on(tmp_path, {"train_x": arrays["train_x"], "train_y": labels})
    decide(run, 19, "relabel", "0")
    data = next_recipe(unswayed.export(run)).build("data").train
    assert data.classes == ("0", "1", "2")
    assert data.given[19] == 0


def test_a_file_that_has_changed_is_refused(tmp_path, arrays):
    run = trained_on(tmp_path, arrays)
    np.savez(tmp_path / "mine.npz", **{**arrays, "train_y": 1 - arrays["train_y"]})
    with pytest.raises(UsageError, match="the data have changed"):
        unswayed.export(run)
