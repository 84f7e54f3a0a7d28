from __future__ import annotations

import numpy as np
import pytest

import unswayed
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


def test_means_are_compared_by_welchs_interval():
    ours, theirs = Spread.of([0.90, 0.91, 0.92]), Spread.of([0.80, 0.81, 0.82])
    assert ours.against(theirs) == "above"
    assert theirs.against(ours) == "below"
    # Two and three runs: t = 2.95 with 1.47 degrees of freedom, whose 97.5 % point is 6.2.
    assert Spread(0.91, 0.00707, 2).against(Spread(0.894, 0.0035, 3)) == "near"
    assert ours.against(Spread.of([0.5])) == "unknown"
    assert Spread(0.5, 0.0, 2).against(Spread(0.5, 0.0, 2)) == "near"
    assert Spread(0.6, 0.0, 2).against(Spread(0.5, 0.0, 2)) == "above"
