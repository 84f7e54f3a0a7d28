from __future__ import annotations

import csv

import pytest

from unswayed import Run
from unswayed.cli import main


def test_wrong_labels_among_digits_are_found_and_checked_with_the_truth(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "train.epochs=2", "train.threads=1"]) == 0
    out, err = capsys.readouterr()
    assert "the plan for 2 minutes" in err
    top = tmp_path / "runs" / "demo"
    with (top / "truth.csv").open(newline="") as file:
        true = {row["id"]: row["true"] for row in csv.DictReader(file)}
    samples = Run(top / "run").samples()
    classes = Run(top / "run").config.classes
    wrong = [classes[k] != true[name] for k, name in zip(samples.given, samples.ids, strict=True)]
    assert len(true) == len(wrong) == 1258
    assert sum(wrong) == 251  # a fifth, rounded down
    assert samples.true is None  # the training was not told
    assert "of all 251 wrong labels" in out
    assert "of 539 other digits correctly" in out


@pytest.mark.parametrize("words", [["--seeds", "2"], ["--save", "results"]])
def test_options_of_the_comparison_are_refused_without_it(words, tmp_path, capsys):
    assert main(["demo", *words, "--runs", str(tmp_path)]) == 2
    assert "belong to: unswayed demo --compare" in capsys.readouterr().err
