"""The paper at the size of the demo: cross entropy memorises wrong labels, CTRR does not."""

from __future__ import annotations

import pytest

import unswayed
from unswayed.report.table import comparison

SEEDS = (0, 1, 2)


@pytest.mark.slow
def test_ctrr_beats_cross_entropy_by_more_than_both_spreads(tmp_path):
    rows = {}
    for recipe in ("digits-ce", "digits"):
        runs = [
            unswayed.train(recipe, f"train.seed={seed}", run=tmp_path / f"{recipe}{seed}")
            for seed in SEEDS
        ]
        (rows[recipe],) = comparison(runs)
    plain, robust = rows["digits-ce"], rows["digits"]
    margin = robust.last.mean - plain.last.mean
    assert margin > robust.last.deviation + plain.last.deviation
    assert margin > 0.05
    assert plain.memorised.mean > 0.5
    assert robust.memorised.mean < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["simsiam", "byol", "simclr"])
def test_a_short_training_in_each_framework_learns_under_noise(framework, tmp_path):
    """Forty per cent of the labels are wrong, and a fifth of the epochs of the demo is enough."""
    words = ("train.epochs=12", "data.size=8", "model.width=16", "optimizer.lr=0.05")
    run = unswayed.train("digits", *words, f"framework.name={framework}", run=tmp_path / "run")
    assert run.summary.last.test_accuracy > 0.8
    assert run.summary.last.wrong_as_given < 0.1
