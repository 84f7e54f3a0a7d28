from __future__ import annotations

import csv

import pytest

import unswayed
from exports.examples import decide, next_recipe, trained
from unswayed.data import DATASETS
from unswayed.exports.labels import line

SMALL = ("data.size=8", "data.test_fraction=0.97")


@pytest.mark.parametrize(
    "fields",
    [("a", "b"), ("a,b", '"q"', "two\nlines"), ("cr\rhere", ""), ("",), ("\u202e", "x" * 300)],
)
def test_a_line_is_read_back_as_it_was(fields):
    (found,) = csv.reader([*line(fields).splitlines(keepends=True)])
    assert tuple(found) == fields
    assert line(fields).endswith("\n")
    assert not line(fields, "").endswith("\n")


def test_built_in_data_get_a_table_of_labels_that_they_can_be_trained_on(tmp_path):
    run = trained(tmp_path / "run", *SMALL, "noise.name=symmetric", "noise.rate=0.5")
    classes, samples = run.provenance.data.classes, run.samples()
    new = classes[(samples.given[0] + 3) % 10]
    decide(run, 0, "relabel", new)
    decide(run, 2, "none", reviewer='ann, "bob"\n<b>')
    found = unswayed.export(run, accept=0.8)  # row 1 has 0.87
    assert found.format == "labels"
    with found.path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "label", "true_label", "old_label", "decided_by", "p_wrong"]
    assert [row["id"] for row in rows] == samples.ids.tolist()
    assert (rows[0]["label"], rows[0]["old_label"]) == (new, classes[samples.given[0]])
    assert rows[1]["decided_by"] == "audit (P >= 0.8)"
    assert (rows[2]["label"], rows[2]["decided_by"]) == ("", 'ann, "bob"\n<b>')
    assert [rows[3][key] for key in ("old_label", "decided_by", "p_wrong")] == [""] * 3
    assert [row["true_label"] for row in rows] == [classes[k] for k in samples.true]
    recipe = next_recipe(found)
    assert recipe.sections["noise"] == {"name": "none"}
    data = recipe.build("data").train
    expected = samples.given.copy()
    expected[0], expected[1] = classes.index(new), (samples.given[1] + 1) % 10
    kept = [row for row in range(len(samples.ids)) if row != 2]
    assert data.ids == tuple(samples.ids[kept])
    assert data.given.tolist() == expected[kept].tolist()
    assert data.true.tolist() == samples.true[kept].tolist()
    assert data.classes == tuple(classes)


def test_a_recipe_with_corrected_labels_trains(tmp_path):
    run = trained(tmp_path / "run", *SMALL)
    decide(run, 0, "remove")
    found = unswayed.export(run, format="labels")
    again = unswayed.train(next_recipe(found), run=tmp_path / "again")
    assert again.provenance.data.samples == len(run.samples().ids) - 1
    assert again.data().train.given.tolist() == again.samples().given.tolist()


def test_unknown_true_labels_stay_unknown(tmp_path, rng):
    from pictures import class_folders

    photos = class_folders(tmp_path / "photos", rng, {"a": 6, "b": 6})
    run = trained(tmp_path / "run", "data.name=folder", f"data.path={photos}", "data.size=8")
    decide(run, 0, "relabel", "b")
    found = unswayed.export(run, format="labels")
    assert found.path.read_text().startswith("id,label,old_label,decided_by,p_wrong\na/000.png,b,a")
    data = DATASETS.build("folder", path=str(photos), size=8, corrected=str(found.path)).train
    assert data.true is None
    assert data.given.tolist() == [1] + [0] * 5 + [1] * 6
