from __future__ import annotations

import csv
import json

import pytest

import unswayed
from conftest import TINY
from unswayed.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return unswayed.train("digits", *TINY, run=tmp_path_factory.mktemp("audit") / "run").path


def test_the_table_is_written_and_the_findings_are_said(run, capsys, tmp_path):
    assert main(["audit", str(run), "--top", "3", "--out", str(tmp_path / "all.json")]) == 0
    said = capsys.readouterr().out
    assert "labels are probably wrong" in said
    assert "worth a look" in said
    assert f"unswayed predict {run}" in said
    rows = list(csv.DictReader((run / "audit.csv").read_text(encoding="utf-8").splitlines()))
    shares = [float(row["p_wrong"]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert said.count("digits/") == 3
    summary = json.loads((run / "audit.json").read_text(encoding="utf-8"))
    assert (
        summary["samples"]
        == len(rows)
        == len(json.loads((tmp_path / "all.json").read_text())["labels"])
    )


def test_the_review_and_the_report_are_named_first(run, capsys):
    assert main(["audit", str(run), "--top", "0"]) == 0
    said = capsys.readouterr().out.splitlines()
    text = (run / "report.html").read_text(encoding="utf-8")
    assert said[-5] == f"look at them and decide: unswayed review {run}"
    assert said[-4].endswith(f": {run / 'report.html'}")
    assert "data:image/jpeg" in text
    assert f"unswayed predict {run} IMAGE" in text
    assert "method ce + ctrr (simsiam), 2 epochs" in text


def test_the_report_can_be_left_out(run, capsys):
    (run / "report.html").unlink(missing_ok=True)
    assert main(["audit", str(run), "--top", "0", "--no-report"]) == 0
    assert not (run / "report.html").exists()
    assert "report.html" not in capsys.readouterr().out


def test_nothing_but_an_earlier_table_is_written_over(run, tmp_path, capsys):
    mine = tmp_path / "labels.csv"
    mine.write_text("path,label\na.jpg,cat\n", encoding="utf-8")
    assert main(["audit", str(run), "--out", str(mine), "--no-report"]) == 2
    assert "is there and no table of an audit" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8").startswith("path,label")
    other = tmp_path / "other.csv"
    for _ in range(2):
        assert main(["audit", str(run), "--out", str(other), "--no-report"]) == 0
    assert f"written: {other}" in capsys.readouterr().out


def test_an_unknown_evidence_is_refused_with_those_there_are(run, capsys):
    assert main(["audit", str(run), "--evidence", "stars"]) == 2
    assert "there are: consensus, dynamics, heads, neighbours, network" in capsys.readouterr().err
