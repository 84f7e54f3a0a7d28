from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduction import grid_file, tuning
from reproduction.tuning import Trial, choose, to_toml, trials
from unswayed.bench.grid import Grid

RESULTS = Path(__file__).parents[2] / "results" / "tuning.json"


def test_every_method_has_as_many_trials():
    counts: dict[str, int] = {}
    for row in Grid.load(grid_file("tuning")).rows:
        method = row.label.rpartition(" ")[0]
        counts[method] = counts.get(method, 0) + 1
    assert set(counts.values()) == {6}
    rows = Grid.load(grid_file("protocol")).rows
    assert {row.name.partition("/")[0] for row in rows} <= counts.keys()


def test_trials_have_a_seed_that_is_not_reported():
    tried = {cell.seed for cell in Grid.load(grid_file("tuning")).cells}
    assert tried.isdisjoint(cell.seed for cell in Grid.load(grid_file("protocol")).cells)


def test_the_best_on_the_holdout_is_chosen_whatever_the_test_set_says():
    runs = [
        {"method": f"ce-{n}", "column": column, "last": last, "holdout_last": holdout}
        for n, last, holdout in ((1, 0.9, 0.3), (2, 0.1, 0.4), (3, 0.8, 0.4))
        for column in ("sym 60", "asym 40")
    ]
    runs.append({"method": "gce-1", "column": "sym 60", "last": 0.9, "holdout_last": 0.9})
    tried = list(trials({"runs": runs}))
    assert [(each.method, each.number) for each in tried] == [("ce", 1), ("ce", 2), ("ce", 3)]
    chosen = choose(tried)
    assert chosen["ce"].number == 2
    assert chosen["ce"].overrides == ("optimizer.filter_lr=0.02",)


def test_what_is_written_is_what_grids_read(tmp_path):
    trial = Trial("gce", 1, ("loss.q=0.3", "optimizer.filter_lr=0.4"), 0.5)
    (tmp_path / "tuned.toml").write_text(to_toml({"gce": trial}), encoding="utf-8")
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'extends = "cpu/cifar10"\ntuned = "tuned.toml"\n'
        'methods = ["gce", { name = "gce", label = "own", set = ["loss.q=0.9"] }]\n'
        '[settings]\n"a" = []\n"b" = ["optimizer.filter_lr=0.1"]\n',
        encoding="utf-8",
    )
    first, by_column, own, _ = Grid.load(grid).cells
    assert first.recipe.sections["loss"]["q"] == 0.3
    assert first.recipe.sections["optimizer"]["filter_lr"] == 0.4
    assert "optimizer.filter_lr=0.4" in first.options
    assert by_column.recipe.sections["optimizer"]["filter_lr"] == 0.1  # the column wins
    assert own.recipe.sections["loss"]["q"] == 0.9


@pytest.mark.skipif(not RESULTS.is_file(), reason="no trials are committed")
def test_the_committed_choice_is_that_of_the_committed_trials():
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert tuning.TUNED.read_text(encoding="utf-8") == to_toml(choose(list(trials(found))))
