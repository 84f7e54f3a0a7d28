from __future__ import annotations

import csv

import pytest

from exports.examples import decide, trained
from unswayed.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return trained(tmp_path / "my run", "data.size=8", "data.test_fraction=0.97")


def test_the_command_writes_and_says_what_to_do_next(run, capsys):
    decide(run, 0, "remove")
    assert main(["export", "my run", "--accept", "0.8", "--to", "labels.csv"]) == 0
    out = capsys.readouterr().out
    assert "labels change: 1 by audit (P >= 0.8)" in out
    assert "next: unswayed train 'my run/recipe.toml' " in out
    with open("labels.csv", newline="") as file:  # noqa: PTH123
        assert len(list(csv.DictReader(file))) == len(run.samples().ids)
    assert main(["export", "my run", "--changed"]) == 0
    assert "the changes alone: my run/changes.csv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--accept", "95"], "--accept is a probability"),
        (["--as", "lables"], "did you mean 'labels'?"),
        (["--to", "x.txt"], "ends in .csv"),
        (["--changed", "--as", "labels"], "leave --as out"),
    ],
)
def test_mistakes_are_named(run, words, message, capsys):
    assert main(["export", "my run", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_run_without_an_audit_is_told_how_to_make_one(run, capsys):
    (run.path / "audit.safetensors").unlink()
    assert main(["export", "my run"]) == 2
    assert "unswayed audit 'my run'" in capsys.readouterr().err
