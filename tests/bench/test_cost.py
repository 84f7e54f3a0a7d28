from __future__ import annotations

import pytest
from grids import write_grid

from unswayed import train
from unswayed.bench.cost import Estimate, estimate, estimates, without_free_options
from unswayed.bench.grid import Grid, Shape
from unswayed.cli import main
from unswayed.recipe import Recipe

SHAPE = Shape(samples=5000, side=8, classes=10)
COLOUR = ["data.name=memory", "model.width=4", "train.threads=1", "noise.name=none"]


def recipe(*words):
    return Recipe.load("digits", *COLOUR, *words)


def test_costs_grow_with_epochs_and_samples():
    once = estimate(recipe("method=ce", "train.epochs=3"), SHAPE)
    twice = estimate(recipe("method=ce", "train.epochs=6"), SHAPE)
    larger = estimate(recipe("method=ce", "train.epochs=3"), Shape(2 * SHAPE.samples, 8, 10))
    assert once.flops > 0
    assert twice.flops == larger.flops == 2 * once.flops
    assert once.seconds > 0


def test_an_estimate_is_what_a_training_counts_in_the_end(tmp_path):
    grid = Grid.load(write_grid(tmp_path, seeds=1, methods='["ce", "ctrr", "coteaching"]'))
    for cell, cost in estimates(grid.only(["clean"]), {}):  # looks at the data itself: 300 images
        made = train(cell.recipe, run=tmp_path / cell.row.key)
        # The last, smaller batch of 270 trained images is dropped in the training alone.
        assert cost.flops == pytest.approx(made.summary.flops * 270 / 256, rel=0.06), cell.row.key


def test_a_method_that_is_told_the_noise_rate_can_be_estimated():
    assert estimate(recipe("method=coteaching/known", "train.epochs=3"), SHAPE).flops > 0


def test_cells_that_differ_in_noise_and_seed_only_are_timed_once(tmp_path):
    cells = Grid.load(write_grid(tmp_path, methods='["ce"]')).cells
    found = [cost for _, cost in estimates(cells, dict.fromkeys(("clean", "sym 40"), SHAPE))]
    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_budget_is_what_is_spent():
    words = ("method=ce", "train.epochs=3")
    flops = estimate(recipe(*words, "train.budget=2 TFLOP"), SHAPE)
    seconds = estimate(recipe(*words, "train.budget=3 min"), SHAPE)
    assert flops.flops == 2e12
    assert seconds.seconds == 180
    assert isinstance(seconds, Estimate)
    assert seconds.flops > 0


def test_a_dry_run_lists_costs_and_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path)
    assert main(["bench", "tiny.toml", "--dry-run", "--workers", "2", "--only", "ce"]) == 0
    out = capsys.readouterr().out
    assert "Cross entropy, sym 40" in out
    assert "Co-teaching" not in out
    assert "hours with 2 at a time" in out
    assert not (tmp_path / "runs").exists()


def test_what_is_done_but_once_is_not_counted_in_every_epoch():
    plain, forward = (
        estimate(recipe(f"method={name}", "train.epochs=20"), SHAPE).flops
        for name in ("ce", "forward")
    )
    assert plain <= forward < 1.05 * plain


def test_label_correction_is_counted_from_its_epoch_on():
    words = ("method=ce", "train.epochs=50")
    plain, late, early = (
        estimate(recipe(*words, *more), SHAPE).flops
        for more in (
            (),
            ("learner.correction={start = 0.8}",),
            ("learner.correction={start = 0.2}",),
        )
    )
    assert plain < late < early
    assert late - plain < 0.5 * (early - plain)


def test_cells_that_differ_in_what_costs_nothing_are_timed_once():
    words = ("method=ctrr", "train.epochs=3")
    shown = [
        without_free_options(recipe(*words, *more)).key()
        for more in (
            ("regularizer.weight=50",),
            ("regularizer.weight=130", "regularizer.tau=0.8", "optimizer.lr=0.04"),
        )
    ]
    assert shown[0] == shown[1]
    assert without_free_options(recipe(*words, "regularizer.weight=0")).key() != shown[0]
