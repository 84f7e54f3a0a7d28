"""Cells in real worker processes, which are killed and interrupted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from unswayed import Run, UsageError, train
from unswayed.bench.grid import Grid
from unswayed.bench.runner import (
    copy_equal_runs,
    describe,
    finished,
    gpus,
    least_used,
    run_cells,
    train_cell,
)
from unswayed.errors import InterruptedRunError

COMMAND = [sys.executable, "-m", "unswayed", "bench"]
LONG = (100000, 99999)  # epochs; no test waits for them


def start(grid, folder, **options):
    words = [*COMMAND, grid, "--runs", folder, "--workers", "1"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **options)
    until(lambda: epochs(folder), process)
    return process


def until(condition, process=None):
    end = time.monotonic() + 240  # a busy machine takes a minute to import PyTorch
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.02)


def epochs(folder):
    """How many epochs each cell has behind it."""
    return {path.parent: len(path.read_text().splitlines()) for path in folder.rglob("*.jsonl")}


def workers_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [c for c in children if "spawn_main" in Path(f"/proc/{c}/cmdline").read_text()]


def gone(pid):
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.slow
def test_a_killed_worker_costs_its_cell_only_and_sigterm_lets_the_next_one_save(
    tiny_grid, tmp_path
):
    first, second = (f'{{ name = "ce", label = "{n}", set = ["train.epochs={n}"] }}' for n in LONG)
    cells = Grid.load(tiny_grid(seeds=1, methods=f"[{first}, {second}]")).cells[1:3]
    events = run_cells(cells, tmp_path, workers=1)
    next(event for event in events if event.share * LONG[0] >= 1)  # an epoch is done
    multiprocessing.active_children()[0].kill()
    death = next(event for event in events if event.failure)
    assert (death.cell, death.failure) == (cells[0], "its process was killed by SIGKILL")
    assert next(events).cell == cells[1]
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(InterruptedRunError, match="nothing is lost") as stopped:
        list(events)
    assert stopped.value.exit_code == 143
    assert all(Run(tmp_path / cell.folder).has_state() for cell in cells)
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_a_killed_parent_takes_its_worker_along_and_nothing_is_lost(tiny_grid, tmp_path):
    folder = tmp_path / "r"
    process = start(tiny_grid(seeds=1, epochs=LONG[0]), folder)
    workers = workers_of(process.pid)
    process.kill()
    process.communicate()
    until(lambda: all(map(gone, workers)))
    ((place, done),) = epochs(folder).items()
    recipe = place / "recipe.toml"  # let the end be near
    recipe.write_text(recipe.read_text().replace(f"epochs = {LONG[0]}", f"epochs = {done + 1}"))
    cells = Grid.load(tiny_grid(seeds=1, epochs=done + 1)).cells
    (begun,) = [cell for cell in cells if folder / cell.folder == place]
    assert finished(cells, folder) == []
    train(begun.recipe, run=place)  # as a worker does
    assert finished(cells, folder) == [begun]
    assert epochs(folder) == {place: done + 1}


def test_ctrl_c_stops_everybody_politely(tiny_grid, tmp_path):
    process = start(tiny_grid(epochs=LONG[0]), tmp_path / "r", start_new_session=True)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing is lost" in err
    assert "Traceback" not in err
    assert err.count("press Ctrl-C again to stop now") == 1  # not by every worker
    assert all(Run(place).has_state() for place in epochs(tmp_path / "r"))


def test_runs_of_another_recipe_are_refused(tiny_grid, tmp_path):
    (cell,) = Grid.load(tiny_grid(seeds=1)).cells[:1]
    train(cell.recipe, run=tmp_path / cell.folder)
    assert finished([cell], tmp_path) == [cell]
    with pytest.raises(UsageError, match=r"another recipe \(it differs in train.epochs\)"):
        finished(Grid.load(tiny_grid(seeds=1, epochs=3)).cells, tmp_path)


def test_errors_that_are_not_ours_are_named_by_their_class():
    assert describe(UsageError("mend it")) == "mend it"
    assert describe(KeyError("x")) == "KeyError: 'x'"


@pytest.mark.parametrize("keep", [True, False])
def test_only_what_a_table_needs_is_kept_unless_asked(tiny_grid, tmp_path, keep):
    (cell,) = Grid.load(tiny_grid(seeds=1)).cells[:1]
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        assert train_cell(cell.recipe, tmp_path / "run", theirs, keep) == ""
    for name in ("records", "checkpoints"):
        assert (tmp_path / "run" / name).is_dir() == keep
    assert Run(tmp_path / "run").finished


def test_a_training_of_another_grid_is_copied_and_not_repeated(tiny_grid, tmp_path, capsys):
    cells = Grid.load(tiny_grid(seeds=1, methods='["ce"]')).cells
    train(cells[0].recipe, run=tmp_path / "runs" / "other" / cells[0].folder)
    folder = tmp_path / "runs" / "tiny"
    assert copy_equal_runs(cells, folder) == [cells[0]]
    assert finished(cells, folder) == [cells[0]]
    assert (
        Run(folder / cells[0].folder).metrics == Run(tmp_path / "runs/other/ce/clean/seed0").metrics
    )
    assert copy_equal_runs(cells, folder) == []


@pytest.mark.slow
def test_what_another_grid_trains_meanwhile_is_not_trained_again(tiny_grid, tmp_path):
    cells = Grid.load(tiny_grid(seeds=2, methods='["ce"]')).cells
    folder, other = tmp_path / "runs" / "tiny", tmp_path / "runs" / "other"
    events = run_cells(cells, folder, workers=1)
    first = next(events).cell  # the other cells wait
    late = next(cell for cell in cells if cell is not first)
    made = train(late.recipe, run=other / late.folder)
    list(events)
    assert Run(folder / late.folder).summary.seconds == made.summary.seconds


def test_what_is_not_finished_elsewhere_is_not_copied(tiny_grid, tmp_path):
    cell = Grid.load(tiny_grid(seeds=1, methods='["ce"]')).cells[0]
    made = train(cell.recipe, run=tmp_path / "runs" / "other" / cell.folder)
    (made.path / "summary.json").unlink()
    assert copy_equal_runs([cell], tmp_path / "runs" / "tiny") == []


def test_workers_share_the_gpus_evenly():
    assert least_used([], []) == ""
    assert least_used(["2", "5"], ["2"]) == "5"
    assert least_used(["2", "5"], ["2", "5"]) == "2"


def test_gpus_are_those_that_this_process_may_see(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,7")
    assert gpus() == ["3", "7"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpus() == []


@pytest.mark.slow
def test_a_cell_that_another_process_has_is_waited_for(tiny_grid, tmp_path):
    cells = Grid.load(tiny_grid(seeds=2, methods='["ce"]')).cells
    taken = tmp_path / "runs" / cells[0].folder
    taken.mkdir(parents=True)
    made = train(cells[0].recipe, run=taken)
    summary = (made.path / "summary.json").read_text(encoding="utf-8")
    (made.path / "summary.json").unlink()  # as if it was not finished yet
    events = run_cells(cells, tmp_path / "runs", workers=1)
    seen = []
    with made.lock():
        for event in events:
            seen.append(event)
            if event.share == 0 and sum(e.share == 1 for e in seen) == len(cells) - 1:
                break
        (made.path / "summary.json").write_text(summary, encoding="utf-8")
    seen += list(events)
    assert not any(event.failure for event in seen)
    assert seen[-1].cell == cells[0]
    assert len(finished(cells, tmp_path / "runs")) == len(cells)
