from __future__ import annotations

import csv

import numpy as np
import pytest
import torch
from pictures import class_folders

import unswayed
from unswayed import Dataset, Recipe, Splits, UsageError
from unswayed.data import DATASETS
from unswayed.data.corrected import read_labels
from unswayed.runs import Run


def relabelled(data, file):
    return read_labels(file).applied_to(Splits(data, None)).train


CLASSES = ("cat", "dog", "bird")
IDS = ("plain", 'a "quoted", one', "two\nlines", "cr\rhere", "\u202edesrever", "x" * 200)


@pytest.fixture
def data():
    images = np.arange(6, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    return Dataset.from_arrays(images, np.array([0, 1, 2, 0, 1, 2]), classes=CLASSES, ids=IDS)


def write(path, rows, columns=("id", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_labels_are_matched_by_id_and_rows_without_one_are_left_out(data, tmp_path):
    labels = dict(zip(IDS, ["dog", "dog", "", "cat", "cat", "bird"], strict=True))
    found = relabelled(data, write(tmp_path / "l.csv", reversed(labels.items())))
    assert found.ids == (*IDS[:2], *IDS[3:])
    assert found.given.tolist() == [1, 1, 0, 0, 2]
    assert found.images[:, 0, 0, 0].tolist() == [0, 1, 3, 4, 5]
    assert found.classes == CLASSES
    assert found.true is None


def test_true_labels_of_the_file_come_first_and_those_of_the_data_stay(data, tmp_path):
    rows = [(name, "dog", "bird", "someone") for name in IDS]
    columns = ("id", "label", "true_label", "decided_by")
    found = relabelled(data, write(tmp_path / "l.csv", rows, columns))
    assert found.true.tolist() == [2] * 6
    known = data.with_given(data.given)
    found = relabelled(known, write(tmp_path / "l.csv", [row[:2] for row in rows]))
    assert found.true.tolist() == data.given.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], r"no line for 1 of the 6 samples, the first of them 'plain'"),
        (lambda rows: [("stranger", "cat"), *rows], r"line 2: no sample is called 'stranger'"),
        (lambda rows: [("plain", "caat"), *rows[1:]], r"line 2: unknown label 'caat'.*'cat'"),
        (lambda rows: [*rows, rows[0]], r"line 10: the id 'plain' stands there twice"),
        (lambda rows: [*rows, ("short",)], r"line 10: it has not as many columns"),
    ],
)
def test_a_bad_line_is_named(data, tmp_path, change, message):
    rows = [(name, "cat") for name in IDS]
    with pytest.raises(UsageError, match=message):
        relabelled(data, write(tmp_path / "l.csv", change(rows)))


def test_a_table_of_something_else_is_refused(data, tmp_path):
    with pytest.raises(UsageError, match=r"no column 'label'.*export RUN --as labels"):
        relabelled(data, write(tmp_path / "l.csv", [], ("id", "given")))
    with pytest.raises(UsageError, match=r"data\.corrected: there is no file"):
        relabelled(data, tmp_path / "nothing.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(UsageError, match="cannot be read"):
        relabelled(data, tmp_path / "b.csv")


@pytest.mark.parametrize("cache", ["memory", "disk", "stream"])
def test_images_stay_where_they_are(tmp_path, rng, cache, monkeypatch):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))
    photos = class_folders(tmp_path / "photos", rng, {"a": 3, "b": 3})
    options = {"path": str(photos), "size": 8, "cache": cache}
    before = DATASETS.build("folder", **options).train
    rows = [(name, "" if name == "a/001.png" else "b") for name in before.ids]
    file = write(tmp_path / "l.csv", [*rows, ("a/broken.png", "a")])
    (photos / "a" / "broken.png").write_bytes(b"none")  # which the file may name
    after = DATASETS.build("folder", **options, corrected=str(file), max_bad=0.5).train
    kept = torch.tensor([0, 2, 3, 4, 5])
    assert torch.equal(after.images[torch.arange(5)], before.images[kept])
    assert after.files.paths == tuple(before.files.paths[row] for row in kept)
    assert type(before.images) is torch.Tensor or type(after.images) is not torch.Tensor
    assert after.fingerprint() != before.fingerprint()
    assert after.given.tolist() == [1] * 5


def test_every_data_set_has_the_option_and_noise_beside_it_is_refused(tmp_path):
    for name in DATASETS.names():
        assert "corrected" in DATASETS[name].options
    with pytest.raises(UsageError, match=r"data\.corrected.*set noise\.name=none"):
        Recipe.load("digits", "data.corrected=x.csv")
    recipe = Recipe.load("digits", "data.corrected=x.csv", "noise.name=none")
    assert recipe.sections["data"]["corrected"].startswith("/")
    assert recipe.with_overrides("data.corrected=").sections["data"]["corrected"] is None


def test_it_can_be_given_as_labels_without_hiding_published_ones(tmp_path):
    file = str(tmp_path / "corrected.csv")
    for name in ("digits", "cifar100"):
        recipe = Recipe.load(
            "digits", f"data.name={name}", f"data.labels={file}", "noise.name=none"
        )
        assert recipe.sections["data"]["corrected"] == file
    assert recipe.sections["data"]["labels"] == "fine"
    chosen = Recipe.load("digits", "data.name=cifar10n", "data.labels=random1", "noise.name=none")
    assert chosen.sections["data"]["labels"] == "random1"


def test_without_it_a_recipe_is_written_as_before():
    recipe = Recipe.load("digits")
    assert "corrected" not in recipe.to_toml()
    bare = {k: v for k, v in recipe.sections["data"].items() if k != "corrected"}
    older = recipe.with_options("data", **bare)
    assert older.key() == recipe.key()
    assert older.difference(recipe) == []


def test_it_works_for_data_given_from_python_and_on_resume(tiny, tmp_path):
    splits = tiny.build("data")
    train = splits.train
    rows = [(name, "" if row < 9 else "7") for row, name in enumerate(train.ids)]
    rows[20:] = [
        (n, train.classes[k]) for n, k in zip(train.ids[20:], train.given[20:], strict=True)
    ]
    file = write(tmp_path / "l.csv", rows)
    words = (f"data.corrected={file}", "noise.name=none", "train.epochs=1")
    run = unswayed.train(tiny, *words, data=splits, run=tmp_path / "run")
    assert run.recipe.sections["data"] == {"name": "memory", "corrected": str(file)}
    assert run.provenance.data.samples == len(train) - 9
    assert run.samples().given[:11].tolist() == [7] * 11
    again = unswayed.train(tiny, *words, data=Splits(train, splits.test), run=tmp_path / "run")
    assert again.path == Run(tmp_path / "run").path
