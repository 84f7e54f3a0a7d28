"""Train the cells of a grid in parallel worker processes.

A cell is an ordinary run. A finished cell is not trained again, an interrupted one is resumed. A
cell that fails, or whose process dies, is reported; the others continue.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from unswayed.bench.grid import Cell
from unswayed.device import pick_device
from unswayed.errors import BusyError, InterruptedRunError, UsageError
from unswayed.recipe import Recipe
from unswayed.runs import Run, remove_leftovers, runs_by_key
from unswayed.runs.durable import StopRequest, stop_on_signal
from unswayed.session import Event as TrainingEvent
from unswayed.session import train
from unswayed.types import Step

NOT_IN_TABLES = ("checkpoints", "records", "predictions.safetensors")
"""The parts of a finished run that no table needs."""

GPUS = "CUDA_VISIBLE_DEVICES"
REPORT_INTERVAL = 0.5  # seconds between two reports of a worker on its progress
BUSY_WAIT = 2.0  # seconds until a cell that another process trains is tried again
STOP_TIMEOUT = 60.0  # seconds that a worker has to save its state when it is asked to stop


@dataclass(frozen=True)
class Event:
    """The progress of a cell: the share that is done, and why it failed if it did.

    Share 1 is the end. Share 0 means that another process trains the cell; it is tried again later.
    """

    cell: Cell
    share: float
    failure: str = ""


@dataclass
class Worker:
    """A process, our end of the pipe to it, and the cell it trains."""

    process: BaseProcess
    pipe: Connection
    gpu: str  # the only one it sees; "" without any
    cell: Cell | None = None


def finished(cells: Sequence[Cell], folder: Path) -> list[Cell]:
    """Return the cells that are trained already.

    It is an error if a folder holds a run of another recipe.
    """
    found = []
    for cell in cells:
        file = folder / cell.folder / "recipe.toml"
        if not file.is_file():
            continue
        trained = Recipe.load(file)
        if trained.key() != cell.recipe.key():
            raise UsageError(
                f"{file.parent} holds a run of another recipe (it differs in "
                f"{', '.join(cell.recipe.difference(trained)[:5])}); choose another --runs, or "
                "remove it"
            )
        if Run(file.parent).finished:
            found.append(cell)
    return found


def elsewhere(cells: Sequence[Cell], folder: Path) -> dict[str, Path]:
    """Return runs of neighbouring grids with the recipes of these cells, by the cells' folders.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; other grids are beside it.
    """
    known = runs_by_key(folder.parent, "*/*/*/*")
    found = {cell.folder: known.get(cell.recipe.key()) for cell in cells}
    return {
        place: run.path
        for place, run in found.items()
        if run is not None and not (folder / place).exists()
    }


def copy_equal_runs(cells: Sequence[Cell], folder: Path, *, keep: bool = False) -> list[Cell]:
    """Copy runs of neighbouring grids that have the recipes of these cells.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; other grids are beside it.
        keep: also copy checkpoints, records and predictions.
    """
    sources = elsewhere(cells, folder)
    for name, source in sources.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place)
        copy = place.with_name(f".{place.name}.{os.getpid()}.new")
        left_out = () if keep else NOT_IN_TABLES
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*left_out))
        try:
            copy.rename(place)
        except OSError:  # another process has just made it
            shutil.rmtree(copy, ignore_errors=True)
    return [cell for cell in cells if cell.folder in sources]


def run_cells(
    cells: Sequence[Cell], folder: Path, *, workers: int, keep: bool = False
) -> Iterator[Event]:
    """Train cells, the expensive ones first, and yield their progress.

    The first SIGINT or SIGTERM lets the workers save and raises `InterruptedRunError`.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; the cells' folders are inside.
        workers: how many processes, with one thread each.
        keep: keep checkpoints, records and predictions of finished cells.
    """
    waiting = sorted(cells, key=lambda cell: cell.cost)  # taken from its end
    started: list[Worker] = []
    with stop_on_signal() as stop:
        try:
            while waiting or any(worker.cell for worker in started):
                busy = sum(worker.cell is not None for worker in started)
                while len(started) < min(workers, len(cells), busy + len(waiting)):
                    gpu = least_used(gpus(), [worker.gpu for worker in started])
                    started.append(_start(keep, gpu))
                _assign(started, waiting, folder, keep)
                events = list(_reports(started))
                if stop.signal_number:  # workers that Ctrl-C has ended already did not fail
                    raise _ask_to_stop(started, stop)
                waiting[:0] = [event.cell for event in events if event.share == 0]
                yield from events
        finally:
            _stop(started)


def _start(keep: bool, gpu: str) -> Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with _environment(one_thread() | ({GPUS: gpu} if gpu else {})), _sigint_blocked():
        process = context.Process(target=work, args=(theirs, keep), daemon=True)
        process.start()
    theirs.close()
    return Worker(process, ours, gpu)


def _assign(workers: Sequence[Worker], waiting: list[Cell], folder: Path, keep: bool) -> None:
    """Give every idle worker a cell."""
    for worker in workers:
        if worker.cell is None and waiting:
            worker.cell = waiting.pop()
            copy_equal_runs([worker.cell], folder, keep=keep)  # of a run that ended just now
            with suppress(OSError):  # a dead worker is noticed when its report is read
                worker.pipe.send((worker.cell.recipe, folder / worker.cell.folder))


def _reports(workers: list[Worker]) -> Iterator[Event]:
    """Yield what the workers report within a moment, and remove workers that died."""
    for pipe in wait([worker.pipe for worker in workers], timeout=0.2):
        worker = next(worker for worker in workers if worker.pipe is pipe)
        try:
            share, failure = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            workers.remove(worker)
            share, failure = 1.0, _death(worker.process.exitcode)
        cell = worker.cell
        if share in (0, 1):
            worker.cell = None
        if cell is not None:
            yield Event(cell, share, failure)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


def _ask_to_stop(workers: Sequence[Worker], stop: StopRequest) -> InterruptedRunError:
    """Ask the workers to save and exit, and wait for them."""
    for worker in workers:
        worker.process.terminate()  # SIGTERM, which a training obeys once its state is saved
        with suppress(OSError):
            worker.pipe.send(None)  # for one that was about to finish and asks for more
    until = time.monotonic() + STOP_TIMEOUT
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
    return InterruptedRunError(
        "stopped; nothing is lost. Go on with the same command", stop.signal_number
    )


def _stop(workers: Sequence[Worker]) -> None:
    """Close the pipes, which ends idle workers, and kill the others; their runs can be resumed."""
    for worker in workers:
        worker.pipe.close()
        if worker.cell is not None:
            worker.process.kill()
        worker.process.join(STOP_TIMEOUT)


def least_used(names: Sequence[str], used: Sequence[str]) -> str:
    """Return the name that is used least; "" if there is none."""
    return min(names, key=used.count, default="")


def gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = [name for name in os.environ.get(GPUS, "").split(",") if name]
    return named[:count] or [str(number) for number in range(count)]


def default_workers(cells: Sequence[Cell]) -> int:
    """Return how many GPUs this process may use, or cores if there are none."""
    kinds = {pick_device(cell.recipe.settings.device).type for cell in cells}
    if kinds - {"cpu"}:
        return max(1, len(gpus())) if "cuda" in kinds else 1
    affinity: Any = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def one_thread() -> dict[str, str]:
    """Return environment variables that keep numerical libraries to one thread."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started inside the block."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT while a worker is spawned, so that it exits quietly on Ctrl-C.

    The worker inherits the mask, and lifts it once it has its own handler.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(pipe: Connection, keep: bool) -> None:
    """Train cells from the pipe until it is closed; runs in the worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # `train` has its own handler
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        while task := pipe.recv():
            recipe, path = task
            try:
                pipe.send((1.0, train_cell(recipe, path, pipe, keep)))
            except BusyError:
                time.sleep(BUSY_WAIT)
                pipe.send((0.0, ""))
    except (EOFError, OSError, InterruptedRunError, KeyboardInterrupt):
        return


def _exit_with_parent() -> None:
    """Exit at once if the parent was killed, since nobody else would stop this process."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def train_cell(recipe: Recipe, path: Path, pipe: Connection, keep: bool) -> str:
    """Train a cell, and return why it failed; empty if it did not."""
    reported = time.monotonic()

    def watch(event: TrainingEvent) -> None:
        nonlocal reported
        if isinstance(event, Step) and time.monotonic() - reported > REPORT_INTERVAL:
            reported = time.monotonic()
            done = (event.epoch + event.step / event.steps) / event.epochs
            pipe.send((min(done, 0.999), ""))

    try:
        run = train(recipe, run=path, watch=watch)
    except (InterruptedRunError, BusyError):
        raise
    except Exception as error:  # whatever it was, the other cells go on
        return describe(error)
    if not keep:
        for name in NOT_IN_TABLES:
            shutil.rmtree(run.path / name, ignore_errors=True)
            (run.path / name).unlink(missing_ok=True)
    return ""


def describe(error: Exception) -> str:
    """Return an error as one line; errors of other packages are named by their class."""
    ours = type(error).__module__.startswith("unswayed.")
    text = " ".join(str(error).split())
    return text if ours else f"{type(error).__name__}: {text}"
