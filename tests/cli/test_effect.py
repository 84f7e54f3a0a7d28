from __future__ import annotations

import json

import pytest

from unswayed.cli import main

LABELS = ("ce", "ce, crops", "ctrr, own views only", "ctrr")


def test_methods_and_controls_are_shown_with_a_plot_and_the_folders(tiny_words, tmp_path, capsys):
    where = ["--runs", str(tmp_path / "runs"), "--save", str(tmp_path / "saved"), "--seeds", "2"]
    for _ in range(2):  # the second time nothing is trained
        assert main(["demo", "--compare", *tiny_words, *where]) == 0
        out, err = capsys.readouterr()
        assert all(f" {label} " in out for label in LABELS)
        assert (tmp_path / "runs" / "demo.svg").is_file()
    assert err.count("finished already") == 8
    saved = json.loads((tmp_path / "saved" / "demo.json").read_text())
    assert [run["method"] for run in saved["runs"]] == [label for label in LABELS for _ in range(2)]
    plain, crops, own, ctrr = (run["recipe"] for run in saved["runs"][::2])
    assert plain["views.weak"]["name"] == ctrr["views.weak"]["name"] == "none"
    assert crops["views.weak"]["area"] == ctrr["views.strong"]["area"]
    assert own["regularizer"]["tau"] > 1 > ctrr["regularizer"]["tau"]


@pytest.mark.parametrize("words", [["--seeds", "0"], ["train.seed=3"]])
def test_seeds_that_cannot_be_trained_are_refused(words, tmp_path, capsys):
    assert main(["demo", "--compare", *words, "--runs", str(tmp_path / "runs")]) == 2
    assert "--seeds" in capsys.readouterr().err
