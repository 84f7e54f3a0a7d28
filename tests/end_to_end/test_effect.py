"""The paper at the size of the demo: what keeps a network from memorising wrong labels."""

from __future__ import annotations

import pytest

import unswayed
from unswayed.cli.effect import ROWS
from unswayed.report.table import comparison

SEEDS = (0, 1, 2)


@pytest.mark.slow
def test_crops_and_contrast_keep_a_network_from_memorising(tmp_path):
    """Crops do most of it. CTRR memorises least, also of those that see crops."""
    found = {}
    for row in ROWS:
        runs = [
            unswayed.train(
                row.recipe,
                *row.overrides,
                f"train.seed={seed}",
                run=tmp_path / f"{row.label}{seed}",
            )
            for seed in SEEDS
        ]
        (found[row.label],) = comparison(runs)
    plain, crops, _, robust = found.values()
    for better in (crops, robust):
        margin = better.last.mean - plain.last.mean
        assert margin > max(0.05, better.last.deviation + plain.last.deviation)
    assert plain.memorised.mean > 0.5
    assert robust.memorised.mean < crops.memorised.mean < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["simsiam", "byol", "simclr"])
def test_a_short_training_in_each_framework_learns_under_noise(framework, tmp_path):
    """Forty per cent of the labels are wrong, and a fifth of the epochs of the demo is enough."""
    words = ("train.epochs=12", "data.size=8", "model.width=16", "optimizer.lr=0.05")
    run = unswayed.train("digits", *words, f"framework.name={framework}", run=tmp_path / "run")
    assert run.summary.last.test_accuracy > 0.8
    assert run.summary.last.wrong_as_given < 0.1
