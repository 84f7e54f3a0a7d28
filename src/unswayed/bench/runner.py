"""Train the cells of a grid side by side, in processes that live as long as there are cells.

A cell is a run like any other, so nothing is lost: what is finished is not trained again, what was
interrupted goes on. A cell that fails, or whose process dies, is reported, and the others go on.
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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from unswayed.bench.grid import Cell
from unswayed.build import pick_device, train
from unswayed.errors import BusyError, InterruptedRunError, UsageError
from unswayed.recipe import Recipe
from unswayed.training.durable import StopRequest, stop_on_signal
from unswayed.training.run import Run, finished_runs, remove_leftovers
from unswayed.types import Epoch, Step

NEEDLESS = ("checkpoints", "records")
"""Folders of a finished run that no table needs."""

GPUS = "CUDA_VISIBLE_DEVICES"
TOLD = 0.5  # seconds between two words of a worker on its progress
BUSY = 2.0  # seconds until a cell that another process has is looked at again
POLITE = 60.0  # seconds that a worker has to save its state when it is asked to stop


@dataclass(frozen=True)
class Event:
    """A cell has come so far; share 1 is its end, and with a failure it ended badly.

    Share 0 is a cell that another process is working on: it is tried again later.
    """

    cell: Cell
    share: float
    failure: str = ""


@dataclass
class Worker:
    """A process, our end of the pipe to it, and what it works on."""

    process: BaseProcess
    pipe: Connection
    cell: Cell | None = field(default=None)
    gpu: str = ""  # the only one it sees, if there are any


def finished(cells: Sequence[Cell], folder: Path) -> list[Cell]:
    """Return the cells that are trained already.

    A folder that holds the run of another recipe is an error: its numbers are not of this grid.
    """
    found = []
    for cell in cells:
        file = folder / cell.folder / "recipe.toml"
        if not file.is_file():
            continue
        if file.read_text(encoding="utf-8") != cell.recipe.to_toml():
            differing = cell.recipe.difference(Recipe.load(file))
            if differing:
                raise UsageError(
                    f"{file.parent} holds a run of another recipe (it differs in "
                    f"{', '.join(differing[:5])}); choose another --runs, or remove it"
                )
        if Run(file.parent).finished:
            found.append(cell)
    return found


def elsewhere(cells: Sequence[Cell], folder: Path) -> dict[str, Path]:
    """Return where grids beside this one have trained cells already, by the cells' folders.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; those of others lie beside it.
    """
    known: dict[str, Path] = {}
    for run in finished_runs(folder.parent, "*/*/*/*"):
        if folder not in run.path.parents:
            text = (run.path / "recipe.toml").read_text(encoding="utf-8")
            known.setdefault(text, run.path)
    sources = {cell.folder: known.get(cell.recipe.to_toml()) for cell in cells}
    return {
        place: source
        for place, source in sources.items()
        if source is not None and not (folder / place).exists()
    }


def borrow(cells: Sequence[Cell], folder: Path, *, keep: bool = False) -> list[Cell]:
    """Copy what grids beside this one have trained already: the same recipe is the same training.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; those of others lie beside it.
        keep: copy checkpoints and per-sample records too, where they are.
    """
    sources = elsewhere(cells, folder)
    for name, source in sources.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place)
        copy = place.with_name(f".{place.name}.{os.getpid()}.new")
        left_out = () if keep else NEEDLESS
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*left_out))
        try:
            copy.rename(place)
        except OSError:  # another process has just made it
            shutil.rmtree(copy, ignore_errors=True)
    return [cell for cell in cells if cell.folder in sources]


def run_cells(
    cells: Sequence[Cell], folder: Path, *, workers: int, keep: bool = False
) -> Iterator[Event]:
    """Train cells, the expensive ones first, and yield what happens to them.

    The first SIGINT or SIGTERM lets the workers save and raises `InterruptedRunError`.

    Args:
        cells: those that are not finished yet.
        folder: of the grid; each cell has its place in it.
        workers: how many processes, with one thread each.
        keep: keep checkpoints and per-sample records of finished cells.
    """
    waiting = sorted(cells, key=lambda cell: cell.cost)  # taken from its end
    crew: list[Worker] = []
    with stop_on_signal() as stop:
        try:
            while waiting or any(worker.cell for worker in crew):
                _employ(crew, waiting, min(workers, len(cells)), folder, keep)
                events = list(_listen(crew))
                if stop.signal_number:  # workers that Ctrl-C has ended already did not fail
                    raise _stopped(crew, stop)
                waiting[:0] = [event.cell for event in events if event.share == 0]
                yield from events
        finally:
            _dismiss(crew)


def _employ(
    crew: list[Worker], waiting: list[Cell], workers: int, folder: Path, keep: bool
) -> None:
    """Give every idle worker a cell, and hire while there are too few."""
    busy = sum(worker.cell is not None for worker in crew)
    while len(crew) < min(workers, busy + len(waiting)):
        crew.append(_hire(keep, _free(gpus(), [worker.gpu for worker in crew])))
    for worker in crew:
        if worker.cell is None and waiting:
            worker.cell = waiting.pop()
            borrow([worker.cell], folder, keep=keep)  # another grid may have trained it meanwhile
            with suppress(OSError):  # one that has just died is found out when we listen
                worker.pipe.send((worker.cell.recipe, folder / worker.cell.folder))


def _free(everything: Sequence[str], taken: Sequence[str]) -> str:
    """Return what the fewest have taken; nothing if there is nothing."""
    return min(everything, key=taken.count, default="")


def gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = [name for name in os.environ.get(GPUS, "").split(",") if name]
    return named[:count] or [str(number) for number in range(count)]


def _hire(keep: bool, gpu: str) -> Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with _environment(one_thread() | ({GPUS: gpu} if gpu else {})), _deaf_to_interrupts():
        process = context.Process(target=work, args=(theirs, keep), daemon=True)
        process.start()
    theirs.close()
    return Worker(process, ours, gpu=gpu)


def _listen(crew: list[Worker]) -> Iterator[Event]:
    """Yield what the workers say within a moment; those that died are taken off the crew."""
    for pipe in wait([worker.pipe for worker in crew], timeout=0.2):
        worker = next(worker for worker in crew if worker.pipe is pipe)
        try:
            share, failure = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            crew.remove(worker)
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


def _stopped(crew: list[Worker], stop: StopRequest) -> InterruptedRunError:
    """Ask the workers to save and leave, and wait for them."""
    for worker in crew:
        worker.process.terminate()  # SIGTERM, which a training obeys once its state is saved
        with suppress(OSError):
            worker.pipe.send(None)  # for one that was about to finish and asks for more
    until = time.monotonic() + POLITE
    for worker in crew:
        worker.process.join(max(0.0, until - time.monotonic()))
    return InterruptedRunError(
        "stopped; nothing is lost. Go on with the same command", stop.signal_number
    )


def _dismiss(crew: list[Worker]) -> None:
    """End all workers: idle ones find their pipe closed, those in the middle of a cell are killed.

    A run survives that at any moment.
    """
    for worker in crew:
        worker.pipe.close()
        if worker.cell is not None:
            worker.process.kill()
        worker.process.join(POLITE)


def one_thread() -> dict[str, str]:
    """Return what libraries that ask the environment when they are loaded take for one thread."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Let processes that are started inside inherit these variables."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start a process that Ctrl-C, which reaches it as it reaches us, does not end in a traceback.

    It inherits the mask, and listens once it has its own way of stopping. Ours comes right after.
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
    """Be a worker: train what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # but `train` takes it as a wish to stop
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        while task := pipe.recv():
            recipe, path = task
            try:
                pipe.send((1.0, _trained(recipe, path, pipe, keep)))
            except BusyError:
                time.sleep(BUSY)
                pipe.send((0.0, ""))
    except (EOFError, OSError, InterruptedRunError, KeyboardInterrupt):
        return


def _die_with_parent() -> None:
    """End at once if the parent was killed: nobody would be left to stop us."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _trained(recipe: Recipe, path: Path, pipe: Connection, keep: bool) -> str:
    """Train a cell and return why it failed, or nothing."""
    told = time.monotonic()

    def watch(event: Step | Epoch) -> None:
        nonlocal told
        if isinstance(event, Step) and time.monotonic() - told > TOLD:
            told = time.monotonic()
            done = (event.epoch + event.step / event.steps) / event.epochs
            pipe.send((min(done, 0.999), ""))

    try:
        run = train(recipe, run=path, watch=watch)
    except (InterruptedRunError, BusyError):
        raise
    except Exception as error:  # whatever it was, it is this cell's and not the others'
        return describe(error)
    if not keep:
        for name in NEEDLESS:
            shutil.rmtree(run.path / name, ignore_errors=True)
    return ""


def describe(error: Exception) -> str:
    """Return an error in a line; what is not ours is named by its class."""
    ours = type(error).__module__.startswith("unswayed.")
    text = " ".join(str(error).split())
    return text if ours else f"{type(error).__name__}: {text}"


def default_workers(cells: Sequence[Cell]) -> int:
    """Return how many cores this process may use; with accelerators, how many of those."""
    kinds = {pick_device(cell.recipe.settings.device).type for cell in cells}
    if kinds - {"cpu"}:
        return max(1, len(gpus())) if "cuda" in kinds else 1
    affinity: Any = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
