from __future__ import annotations

import json

import pytest

from unswayed.cli import main


def test_both_methods_are_shown_with_a_plot_and_the_folders(tiny_words, tmp_path, capsys):
    where = ["--runs", str(tmp_path / "runs"), "--save", str(tmp_path / "saved"), "--seeds", "2"]
    for _ in range(2):  # the second time nothing is trained
        assert main(["demo", "--compare", *tiny_words, *where]) == 0
        out, err = capsys.readouterr()
        assert "ce + ctrr (simsiam)" in out
        assert (tmp_path / "runs" / "demo.svg").is_file()
    assert err.count("finished already") == 4
    saved = json.loads((tmp_path / "saved" / "demo.json").read_text())
    assert [run["summary"]["name"] for run in saved["runs"]] == ["digits-ce"] * 2 + ["digits"] * 2


@pytest.mark.parametrize("words", [["--seeds", "0"], ["train.seed=3"]])
def test_seeds_that_cannot_be_trained_are_refused(words, tmp_path, capsys):
    assert main(["demo", "--compare", *words, "--runs", str(tmp_path / "runs")]) == 2
    assert "--seeds" in capsys.readouterr().err
