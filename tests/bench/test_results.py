from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduction.pages import relative_seconds
from unswayed.bench.grid import Grid
from unswayed.bench.results import (
    _agreed,
    collect,
    note_failure,
    read_failures,
    render,
    save,
    to_json,
)
from unswayed.bench.tables import percent, table
from unswayed.report.table import Spread
from unswayed.session import train

HERE = Path(__file__).parent


def run(method, column, seed, last, **more):
    numbers = {
        "method": method,
        "column": column,
        "seed": seed,
        "last": last,
        "selected": last + 0.01,
        "selected_epoch": 3,
        "oracle_best": last + 0.02,
        "holdout_last": 0.5,
        "holdout_selected": 0.6,
        "memorised": None,
        "seconds": 4.0,
        "epochs": 4,
        "noise_rate": 0.4,
        "rate_used": None,
    }
    return {**numbers, **more}


def method(key, label):
    return {"key": key, "label": label, "method": key, "options": []}


@pytest.fixture
def results():
    return {
        "grid": "small",
        "description": "A table made by hand.",
        "command": "unswayed bench small.toml",
        "extends": "digits",
        "seeds": 2,
        "epochs": [4],
        "origin": {"unswayed": "1.0", "commit": {"abc": 4, "def": 3}, "name": "A CPU", "cores": 2},
        "columns": [
            {"name": "clean", "overrides": ["noise.name=none"], "noise": "as given"},
            {"name": "sym 40", "overrides": ["noise.rate=0.4"], "noise": ""},
        ],
        "methods": [
            method("ce", "Cross entropy"),
            method("a|b", "A | B"),
            method("none", "Nothing yet"),
        ],
        "failures": {"none/clean/seed0": "the loss is not finite"},
        "runs": [
            run("ce", "clean", 0, 0.90, flops=1.5e12),
            run("ce", "clean", 1, 0.92, flops=2.5e12),
            run("ce", "sym 40", 0, 0.40, memorised=0.8),
            run("ce", "sym 40", 1, 0.50, memorised=1.0),
            run("a|b", "clean", 0, 0.91, seconds=10.0, rate_used=0.1),
            run("a|b", "clean", 1, 0.93, seconds=14.0, rate_used=0.2),
            run("a|b", "sym 40", 0, 0.70, seconds=12.0, memorised=0.1, rate_used=0.45),
        ],
    }


def test_the_page_is_the_expected_one(results):
    assert render(results) == (HERE / "small.md").read_text(encoding="utf-8")


def test_mean_spread_and_n_are_right(results):
    rows = table(results, "last", rank=False)
    assert rows[0] == ["method", "clean", "sym 40"]
    assert rows[1] == ["Cross entropy", "91.0 ± 1.4", "45.0 ± 7.1"]
    assert rows[2] == ["A | B", "92.0 ± 1.4", "70.0 (n = 1)"]
    assert rows[3] == ["Nothing yet", "–", "–"]


def test_the_best_is_bold_and_what_is_within_a_spread_of_it_italic(results):
    rows = table(results, "last", rank=True)
    assert [row[1] for row in rows[1:]] == ["*91.0 ± 1.4*", "**92.0 ± 1.4**", "–"]
    assert [row[2] for row in rows[1:]] == ["45.0 ± 7.1", "**70.0 (n = 1)**", "–"]


def test_seconds_are_relative_to_cross_entropy_by_epoch(results):
    assert relative_seconds(results, "ce") == 1
    assert relative_seconds(results, "a|b") == pytest.approx((10 + 12) / (4 + 4))
    assert relative_seconds(results, "none") is None


def test_a_spread_in_percent():
    assert percent(Spread(0.5, 0.01, 3), 3) == "50.0 ± 1.0"
    assert percent(Spread(0.5, 0.0, 1), 1) == "50.0"
    assert percent(None, 3) == "–"


def test_the_json_has_a_line_for_each_run_and_loads_to_the_same(results, tmp_path):
    text = to_json(results)
    assert json.loads(text) == results
    assert sum('"seed": ' in line for line in text.splitlines()) == 7
    data, page = save(results, tmp_path / "new")
    assert data.read_text(encoding="utf-8") == text
    assert page.read_text(encoding="utf-8") == render(json.loads(text))


def test_nothing_measured_is_a_page_of_dashes(results):
    page = render({**results, "runs": [], "origin": {}, "failures": {}})
    assert "0 of 12 trainings" in page
    assert "| Cross entropy | – | – |" in page


def test_where_cells_do_not_agree_every_value_is_counted():
    origins = [{"commit": "a", "torch": "2"}, {"commit": "b", "torch": "2"}]
    assert _agreed(origins) == {"commit": {"a": 1, "b": 1}, "torch": "2"}


def test_a_failure_is_remembered_until_the_cell_is_trained(tmp_path, tiny_grid):
    first, second = Grid.load(tiny_grid()).cells[:2]
    assert read_failures(tmp_path) == {}
    note_failure(tmp_path, first, "")
    assert read_failures(tmp_path) == {}
    note_failure(tmp_path, first, "bad luck")
    note_failure(tmp_path, second, "worse")
    note_failure(tmp_path, first, "")
    assert read_failures(tmp_path) == {second.folder: "worse"}


def test_epochs_are_those_that_were_trained_where_a_budget_sets_them(tmp_path, tiny_grid):
    grid = Grid.load(tiny_grid(epochs='3\nbudget = "0.0000003 PFLOP"'))
    run = train(grid.cells[0].recipe, run=tmp_path / "runs" / grid.cells[0].folder)
    assert run.summary.epochs != 3
    found = collect(grid, tmp_path / "runs", "unswayed bench tiny.toml")
    assert found["epochs"] == [run.summary.epochs]
