from __future__ import annotations

import csv

import pytest

import unswayed
from exports.examples import decide, trained
from unswayed import UsageError


@pytest.fixture
def run(tmp_path):
    return trained(tmp_path / "my run", "data.size=8", "data.test_fraction=0.97")


@pytest.mark.parametrize("format", ["links", "manifest", "npz", "lables"])
def test_a_format_that_the_data_do_not_have_is_refused_with_those_they_have(run, format):
    with pytest.raises(UsageError, match=f"--as {format}: data.name=digits .*huggingface, labels"):
        unswayed.export(run, format=format)


def test_a_wrong_ending_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match=r"a file that ends in \.csv"):
        unswayed.export(run, tmp_path / "labels.txt")


def test_the_changes_alone(run, tmp_path):
    decide(run, 0, "remove")
    found = unswayed.export(run, tmp_path / "table.csv", changed=True, accept=0.8)
    with found.path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["what"] for row in rows] == ["remove", "accept"]
    assert float(rows[1]["p_wrong"]) == pytest.approx(0.89)
    assert list(tmp_path.glob("table*")) == [found.path]
    assert found.next == ""
    assert unswayed.export(run, changed=True).path == run.path / "changes.csv"
    with pytest.raises(UsageError, match="leave --as out"):
        unswayed.export(run, changed=True, format="labels")


def test_what_is_said(run):
    decide(run, 0, "remove")
    found = unswayed.export(str(run.path), accept=0.8)
    words = str(found).splitlines()
    n = len(run.samples().ids)
    assert words[0] == f"1 of {n} labels change: 1 by audit (P >= 0.8)"
    assert words[1] == "1 samples are left out"
    assert "1 labels change without review; 0.1 of those" in words[2]
    assert words[3] == f"written, as labels: {run.path / 'corrected.csv'}"
    assert words[4] == f"every change: {run.path / 'corrected.changes.csv'}"
    assert words[5].startswith(f"next: unswayed train '{run.path}/recipe.toml' 'data.corrected=")
    assert words[5].endswith(f"--run '{run.path}-corrected'")
    run.path.with_name("my run-corrected").mkdir()
    assert unswayed.export(run, accept=0.8).next.endswith(f"--run '{run.path}-corrected-2'")


def test_a_run_may_be_given_as_the_current_folder(run, monkeypatch):
    monkeypatch.chdir(run.path)
    found = unswayed.export(".")
    assert found.path.as_posix() == "corrected.csv"
    assert found.next.endswith(f"--run '{run.path}-corrected'")


def test_nothing_to_change_is_an_export_too(run):
    found = unswayed.export(run)
    assert found.corrections.changes == ()
    assert str(found).startswith("0 of ")
    assert found.changes.read_text().count("\n") == 1
