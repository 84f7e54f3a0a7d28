from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

import unswayed
from unswayed.cli.show import comparison_table
from unswayed.report.table import Spread, comparison


def test_the_spread_is_numpys():
    values = [0.91, 0.95, 0.97]
    spread = Spread.of(values)
    assert (spread.mean, spread.deviation) == pytest.approx(
        (np.mean(values), np.std(values, ddof=1))
    )
    assert spread.percent() == "94.3 ± 3.1 %"
    assert Spread.of([0.5]).percent() == "50.0 %"


def test_runs_are_grouped_by_everything_but_the_seed(tiny, tmp_path):
    words = [("train.seed=0",), ("train.seed=1",), ("loss.name=gce",)]
    runs = [
        unswayed.train(tiny, "train.epochs=1", *w, run=tmp_path / str(i))
        for i, w in enumerate(words)
    ]
    rows = comparison(runs)
    assert [row.method for row in rows] == ["ce + ctrr (simsiam)", "gce + ctrr (simsiam)"]
    assert rows[0].seeds == (0, 1)
    expected = [run.summary.last.test_accuracy for run in runs[:2]]
    assert rows[0].last.mean == pytest.approx(np.mean(expected))
    assert rows[0].method == runs[0].method


@pytest.fixture
def corrected(tiny, tmp_path):
    """Return a function that trains on a table of corrected labels of this name."""

    def train(name):
        train = tiny.build("data").train
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        rows = "".join(f"{i},{k}\n" for i, k in zip(train.ids, train.given, strict=True))
        file.write_text(f"id,label\n{rows}")
        words = (f"data.corrected={file}", "noise.name=none", "train.epochs=1")
        return unswayed.train(tiny, *words, run=tmp_path / f"{name} run")

    return train


def test_runs_of_other_labels_are_told_apart(tiny, tmp_path, corrected):
    plain = unswayed.train(tiny, "train.epochs=1", "noise.name=none", run=tmp_path / "plain")
    first = corrected("a/corrected.csv")
    rows = comparison([plain, first])
    name = "ce + ctrr (simsiam)"
    assert [row.method for row in rows] == [name, f"{name}, labels: corrected.csv"]
    assert comparison([first])[0].method == name  # there is nothing to tell apart
    rows = comparison([plain, first, corrected("b/corrected.csv"), corrected("c/[bold]\u202e")])
    assert [row.method.removeprefix(name) for row in rows] == [
        "",
        ", labels: a/corrected.csv",
        ", labels: b/corrected.csv",
        ", labels: c/[bold]�",
    ]
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_table(rows, oracle=True))
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    cells = "".join(re.split(r"\s{2,}", line.strip())[0] for line in shown.splitlines())
    assert "…" not in shown
    assert "corrected.csv" in cells
    assert "[bold]" in cells


def test_means_are_compared_by_welchs_interval():
    ours, theirs = Spread.of([0.90, 0.91, 0.92]), Spread.of([0.80, 0.81, 0.82])
    assert ours.against(theirs) == "above"
    assert theirs.against(ours) == "below"
    # Two and three runs: t = 2.95 with 1.47 degrees of freedom, whose 97.5 % point is 6.2.
    assert Spread(0.91, 0.00707, 2).against(Spread(0.894, 0.0035, 3)) == "near"
    assert ours.against(Spread.of([0.5])) == "unknown"
    assert Spread(0.5, 0.0, 2).against(Spread(0.5, 0.0, 2)) == "near"
    assert Spread(0.6, 0.0, 2).against(Spread(0.5, 0.0, 2)) == "above"
