from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from pictures import class_folders
from PIL import Image

import unswayed
from exports.examples import decide, digests, trained
from unswayed import UsageError
from unswayed.data import from_huggingface
from unswayed.exports import corrected

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    datasets = pytest.importorskip("datasets")


@pytest.fixture
def source(rng):
    images = [Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)) for _ in range(16)]
    features = datasets.Features(
        {
            "note": datasets.Value("string"),
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "more": datasets.Value("int64"),
        }
    )
    rows = {"note": ["<b>"] * 16, "image": images, "label": [0, 1] * 8, "more": range(16)}
    return datasets.Dataset.from_dict(rows, features=features)


def test_a_data_set_from_python_is_corrected(source, tmp_path):
    run = trained(tmp_path / "run", data=from_huggingface(source))
    decide(run, 0, "relabel", "dog")
    decide(run, 3, "remove")
    found = corrected(run, source, accept=0.6)  # rows 1 and 2 have more than that
    assert found.features == source.features
    assert list(found.features) == list(source.features)
    assert found["label"][:4] == [1, 0, 1, 0]
    assert list(found["more"]) == [row for row in range(16) if row != 3]
    assert list(source["label"]) == [0, 1] * 8
    assert np.array_equal(np.asarray(found[3]["image"]), np.asarray(source[4]["image"]))


def test_another_data_set_is_refused(source, tmp_path):
    run = trained(tmp_path / "run", data=from_huggingface(source))
    with pytest.raises(UsageError, match="these 15 rows are not those of"):
        corrected(run, source.select(range(15)))
    flipped = source.select([*range(1, 16), 0])
    with pytest.raises(UsageError, match="row 0 has another label"):
        corrected(run, flipped)


def test_the_labels_of_data_from_python_can_be_exported_and_used(source, tmp_path):
    data = from_huggingface(source)
    run = trained(tmp_path / "run", data=data)
    decide(run, 0, "remove")
    found = unswayed.export(run)
    assert found.format == "labels"
    assert found.next.startswith("unswayed.train(")
    assert "data=..." in found.next
    words = f"data.corrected={found.path}"
    again = unswayed.train(run.recipe, words, data=data, run=tmp_path / "again")
    assert again.provenance.data.samples == 15
    with pytest.raises(UsageError, match=r"cannot be written so; there are: labels"):
        unswayed.export(run, tmp_path / "hf", format="huggingface")


def test_a_folder_is_saved_with_its_files(tmp_path, rng):
    photos = tmp_path / "photos"
    for part, count in (("train", 6), ("test", 2)):
        class_folders(photos / part, rng, {"cat": count, "it's <b>": count})
    (photos / "train" / "cat" / "broken.png").write_bytes(b"none")
    words = ("data.name=folder", f"data.path={photos}", "data.size=8", "data.max_bad=0.5")
    run = trained(tmp_path / "run", *words)
    decide(run, 0, "relabel", "it's <b>")
    decide(run, 3, "remove")
    found = unswayed.export(run, tmp_path / "hf", format="huggingface")
    saved = datasets.load_from_disk(str(found.path))
    assert saved["train"].features["label"].names == ["cat", "it's <b>"]
    assert list(saved["train"]["id"]) == [n for r, n in enumerate(run.samples().ids) if r != 3]
    assert list(saved["train"]["label"]) == [1] + [0] * 4 + [1] * 6
    assert list(saved["test"]["label"]) == [0, 0, 1, 1]
    photo = Image.open(photos / "train" / "cat" / "001.png")
    assert np.array_equal(np.asarray(saved["train"][1]["image"]), np.asarray(photo))
    assert (found.path / "changes.csv").is_file()
    before = digests(tmp_path)
    unswayed.export(run, tmp_path / "hf", format="huggingface")
    assert digests(tmp_path) == before


def test_arrays_are_saved_as_images(tmp_path):
    run = trained(tmp_path / "run", "data.size=8", "data.test_fraction=0.97")
    decide(run, 1, "remove")
    found = unswayed.export(run, format="huggingface")
    saved = datasets.load_from_disk(str(found.path))
    train = run.data().train
    assert len(saved["train"]) == len(train) - 1
    assert np.array_equal(np.asarray(saved["train"][1]["image"]), train.images[2, 0].numpy())
    assert saved["train"][1]["id"] == train.ids[2]
    before = digests(found.path)
    unswayed.export(run, format="huggingface")
    assert digests(found.path) == before


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    run = trained(tmp_path / "run", "data.size=8", "data.test_fraction=0.97")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install 'unswayed\[hf\]'"):
        unswayed.export(run, format="huggingface")
