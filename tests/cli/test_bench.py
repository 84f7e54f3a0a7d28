"""`unswayed bench`, with cells trained in worker processes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from grids import write_grid

from unswayed import Run, train
from unswayed.bench.grid import Grid
from unswayed.cli import main

BOOM = '["ce", "coteaching", { name = "ce", label = "boom", set = ["optimizer.lr=1e30"] }]'
COMMAND = ["bench", "tiny.toml", "--workers", "1"]
OTHERS = """\
title = "A table"
source = "Somebody, table 1"
runs = 3
columns = ["clean", "sym 40"]

[oracle_best]
ce = [[93.97, 0.22], [82.73, 0.16]]
"""


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_grid(tmp_path, methods=BOOM)


def test_what_is_missing_is_trained_and_saved_with_its_failures(grid, capsys):
    first = Grid.load(grid).cells[0]
    train(first.recipe, run=f"runs/tiny/{first.folder}")  # as if it was done before
    assert main([*COMMAND, "--save", "results"]) == 1
    out, err = capsys.readouterr()
    assert "1 of 12 cells are finished already" in err
    assert "11 of 11 cells, 4 failed, 100 %" in err
    assert err.count("failed: boom, ") == 4
    assert out.endswith("results/tiny.json\nresults/tiny.md\n")
    check_folders()
    check_results()
    check_that_nothing_is_trained_again(capsys)


def check_folders():
    run = Run("runs/tiny/coteaching/sym-40/seed1")
    assert {file.name for file in run.path.iterdir()}.isdisjoint({"records", "checkpoints"})
    assert run.summary.epochs == len(run.metrics) == 2
    assert run.provenance.hardware.threads == 1


def check_results():
    found = json.loads(Path("results/tiny.json").read_text(encoding="utf-8"))
    assert len(found["runs"]) == 8
    assert found["origin"]["threads"] == 1
    assert found["command"] == "unswayed bench tiny.toml --seeds 2"
    assert len(found["failures"]) == 4
    assert "is not finite at epoch" in found["failures"]["boom/clean/seed0"]
    first, last = found["runs"][0], found["runs"][-1]
    accuracy = Run("runs/tiny/ce/clean/seed0").summary.last.test_accuracy
    assert first["last"] == pytest.approx(accuracy, abs=1e-6)
    assert first["memorised"] is None
    assert last["rate_used"] > 0


def test_results_are_not_replaced_by_fewer(grid, capsys):
    Path("results").mkdir()
    before = '{"extends": "digits", "command": "", "runs": [{}, {}, {}]}'
    Path("results/tiny.json").write_text(before, encoding="utf-8")
    assert main([*COMMAND, "--table-only", "--save", "results"]) == 2
    assert "has 3 runs, and these are 0" in capsys.readouterr().err
    assert Path("results/tiny.json").read_text(encoding="utf-8") == before


def check_that_nothing_is_trained_again(capsys):
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json*")}
    assert main([*COMMAND, "--only", "ce", "coteaching"]) == 0
    assert "all 8 cells are finished; nothing was trained" in capsys.readouterr().err
    assert main([*COMMAND, "--table-only", "--save", "again"]) == 0
    for name in ("tiny.json", "tiny.md"):
        assert Path("again", name).read_text() == Path("results", name).read_text()
    assert before == {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json*")}


def test_cells_in_saved_results_are_not_trained_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path, methods='["ce"]')
    assert main([*COMMAND, "--only", "clean", "--save", "results"]) == 0
    file = Path("results/tiny.json")
    first = json.loads(file.read_text(encoding="utf-8"))
    shutil.rmtree("runs")  # what another machine does not have
    capsys.readouterr()
    assert main([*COMMAND, "--save", "results"]) == 0
    err = capsys.readouterr().err
    assert "2 of 4 cells are in the saved results" in err
    assert "2 of 2 cells, 100 %" in err
    assert not Path("runs/tiny/ce/clean").exists()
    both = json.loads(file.read_text(encoding="utf-8"))
    assert both["runs"][:2] == first["runs"]
    assert len(both["runs"]) == 4
    assert both["origin"] == first["origin"]
    assert all(column["noise"] for column in both["columns"])


def test_saved_numbers_of_another_recipe_are_not_taken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path, methods='["ce"]', seeds=1)
    assert main([*COMMAND, "--save", "results"]) == 0
    shutil.rmtree("runs")
    write_grid(tmp_path, methods='["ce"]', seeds=1, epochs=1)
    capsys.readouterr()
    assert main([*COMMAND, "--save", "results"]) == 0
    assert "saved results" not in capsys.readouterr().err
    found = json.loads(Path("results/tiny.json").read_text(encoding="utf-8"))
    assert found["epochs"] == [1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--only", "gcee"], "has no method or column 'gcee'"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--formats", "csv"], "add --save DIR"),
        (["train.epoch=3"], "has no option 'epoch'"),
        (["--save", "/proc/nowhere"], "/proc/nowhere cannot be made"),
    ],
)
def test_a_mistake_exits_with_2_in_one_line_and_writes_nothing(grid, more, message, capsys):
    assert main([*COMMAND, *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    assert not Path("runs").exists()


def test_an_unknown_grid_exits_with_2(capsys):
    assert main(["bench", "digit-frameworks"]) == 2
    assert "did you mean 'digits-frameworks'" in capsys.readouterr().err


def test_list_shows_methods_with_papers_and_presets_and_grids_apart_from_recipes(capsys):
    assert main(["list", "methods"]) == 0
    out = capsys.readouterr().out
    assert "  elr: Early-learning regularization (Liu et al., NeurIPS 2020, eq. 6)\n" in out
    assert "elr/cifar100" in out
    assert main(["list", "grids"]) == 0
    assert "digits-frameworks: " in capsys.readouterr().out
    assert main(["list", "recipes"]) == 0
    assert "digits-frameworks" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not the results of a grid"),
        (
            '{"runs": [], "extends": "paper-simsiam", "command": ""}',
            "results of another grid called 'tiny'",
        ),
        (
            '{"runs": [], "extends": "digits", "command": "unswayed bench a.toml optimizer.lr=1"}',
            "was made by `unswayed bench a.toml optimizer.lr=1`",
        ),
    ],
)
def test_what_is_in_the_way_is_said_before_anything_is_trained(grid, text, message, capsys):
    Path("results").mkdir()
    Path("results/tiny.json").write_text(text, encoding="utf-8")
    assert main([*COMMAND, "--save", "results"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("runs").exists()
    assert Path("results/tiny.json").read_text(encoding="utf-8") == text


def test_ours_and_the_published_number_are_shown_of_what_was_asked_for(grid, capsys):
    text = grid.read_text(encoding="utf-8").replace(
        "seeds = 2", 'seeds = 1\npublished = "others.toml"'
    )
    grid.write_text(text, encoding="utf-8")
    Path("others.toml").write_text(OTHERS, encoding="utf-8")
    cell, *_ = Grid.load(grid).only(["ce", "sym 40"])
    run = train(cell.recipe, run=f"runs/tiny/{cell.folder}")
    assert main([*COMMAND, "--table-only", "--only", "ce", "sym 40"]) == 0
    out = capsys.readouterr().out
    assert "82.73 ± 0.16" in out
    best = 100 * run.summary.oracle_best.test_accuracy
    assert f"{best:.2f} / " in out
    assert "Co-teaching" not in out
    assert "clean" not in out


def test_a_table_of_nothing_says_so(grid, capsys):
    assert main([*COMMAND, "--table-only"]) == 0
    assert "no cell is finished yet" in capsys.readouterr().err


def test_cells_are_not_tried_if_all_before_failed_for_one_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path, methods='["coteaching", "ce", "gce"]')
    Path("images.npz").unlink()
    assert main(COMMAND) == 1
    err = capsys.readouterr().err
    assert "and 4 more: " in err  # the four of the costliest method, and one of the next
    assert "7 cells are not tried" in err


@pytest.mark.slow
def test_other_methods_are_trained_if_one_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = '{ name = "coteaching", label = "bad", set = ["data.path=none.npz"] }'
    write_grid(tmp_path, methods=f'[{bad}, "ce"]')
    assert main(COMMAND) == 1
    err = capsys.readouterr().err
    assert "8 of 8 cells, 4 failed" in err
    assert "not tried" not in err


@pytest.mark.slow
def test_other_columns_are_trained_if_one_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = write_grid(tmp_path, methods='["coteaching", "ce", "gce"]')
    text = grid.read_text(encoding="utf-8")
    grid.write_text(text.replace('clean = ["', 'clean = ["data.path=none.npz", "'))
    assert main(COMMAND) == 1
    err = capsys.readouterr().err
    assert "12 of 12 cells, 6 failed" in err
    assert "not tried" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.device=cuda:1"], "CUDA_VISIBLE_DEVICES"),
        (["--only", "coteaching", "sym 40"], "leaves out coteaching with sym 40"),
    ],
)
def test_what_a_grid_cannot_train_is_refused(grid, capsys, words, message):
    with grid.open("a", encoding="utf-8") as file:
        file.write('\n[skip]\ncoteaching = ["sym 40"]\n')
    before = sorted(grid.parent.iterdir())
    assert main([*COMMAND, *words]) == 2
    assert message in capsys.readouterr().err
    assert sorted(grid.parent.iterdir()) == before


@pytest.mark.slow
def test_equal_failures_are_told_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path, methods='["ce"]')
    Path("images.npz").unlink()
    assert main(COMMAND) == 1
    err = capsys.readouterr().err
    assert err.count("images.npz") == 1
    assert "and 3 more: " in err
