"""Train into a run folder, resume a run, evaluate a run.

`fit` yields events, so that whoever watches writes an ordinary `for` loop. `train` and `resume` run
that loop to its end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

import unswayed
from unswayed.build import assemble, make_trainer, prepare, resolve, settled
from unswayed.data import CORRECTED, Dataset, Splits
from unswayed.device import pick_device, threads
from unswayed.errors import ToldElsewhereError, UnwritableFileError, UsageError
from unswayed.processes import count, first_does, from_first, is_first, noticing, of_all
from unswayed.recipe import Recipe
from unswayed.runs import Run
from unswayed.runs.durable import durable, stop_on_signal
from unswayed.runs.finish import finish
from unswayed.runs.provenance import gather
from unswayed.training.measure import accuracy, predictions
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Step


@dataclass(frozen=True, slots=True)
class Opened:
    """The run folder exists: the training starts, resumes, or was finished before."""

    run: Run
    state: Literal["new", "resumed", "finished"]


Event = Opened | Step | Epoch
Watch = Callable[[Event], None]
Data = Splits | Dataset


def train(
    recipe: Recipe | str | Path = "digits",
    *overrides: str,
    run: str | Path | None = None,
    data: Data | None = None,
    watch: Watch | None = None,
) -> Run:
    """Train a recipe, and return the finished run.

    If the folder already holds a run of this recipe, the run is resumed. A finished run is returned
    as it is.

    >>> import unswayed
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> run.summary.last.epoch
    0

    Args:
        recipe: a `Recipe`, a TOML file, or the name of a shipped recipe.
        *overrides: options such as "noise.rate=0.4".
        run: the folder; a new one under `runs/` if not given.
        data: your own data in place of the recipe's `data` section.
        watch: called with every event: `Opened`, then each `Step` and `Epoch`.
    """
    return _watched(fit(recipe, *overrides, run=run, data=data), watch)


def resume(path: str | Path, *, data: Data | None = None, watch: Watch | None = None) -> Run:
    """Resume an interrupted run from its newest good state, and return it once it is finished.

    A finished run is returned as it is.

    >>> import unswayed
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> unswayed.resume("runs/short").finished
    True

    Args:
        path: the run folder.
        data: the data, if the run was started with data given from Python.
        watch: called with every event: `Opened`, then each `Step` and `Epoch`.
    """
    return _watched(go_on(Run(path), data=data), watch)


def _watched(events: Iterator[Event], watch: Watch | None) -> Run:
    opened = None
    for event in events:
        opened = event if isinstance(event, Opened) else opened
        if watch is not None:
            watch(event)
    assert opened is not None
    return opened.run


def fit(
    recipe: Recipe | str | Path = "digits",
    *overrides: str,
    run: str | Path | None = None,
    data: Data | None = None,
) -> Iterator[Event]:
    """Train a recipe, and yield its events; the arguments are those of `train`."""
    own = _splits(data)
    recipe = _recipe(recipe, overrides, own)
    path = None if run is None else Path(run)
    if path is not None and from_first((path / "recipe.toml").is_file()):
        yield from _again(recipe, _seen_by_all(path), own)
        return
    if path is not None and is_taken(path):
        raise UsageError(f"{path} is not empty and not a run folder; choose another")
    with threads(recipe.settings.threads):
        splits, noise = prepare(recipe, own)
        _check_alike(recipe, splits)
        resolved = from_first(resolve(recipe, splits))
        trainer = make_trainer(settled(recipe, resolved), splits)
        provenance = gather(trainer, noise, recipe, resolved)
        path = Path(from_first(str(path or new_folder(recipe.name))))
        place = path
        first_does(lambda: Run.create(place, recipe, provenance, trainer.train, trainer.holdout))
        yield from _kept(trainer, _seen_by_all(path), recipe, "new")


def go_on(run: Run, *, data: Data | None = None) -> Iterator[Event]:
    """Resume a run from its newest good state, and yield its events."""
    if from_first(run.finished):
        yield Opened(run, "finished")
        return
    known = run.provenance
    recipe = run.recipe
    if run.has_state() and "weights" in recipe.sections["model"]:
        model = {**recipe.sections["model"], "weights": None}  # the state holds newer ones
        recipe = recipe.with_options("model", **model)
    recipe = settled(recipe, known.resolved.model_dump(exclude_none=True))
    # As many threads as before give the same bits. Another number of processes has its own share.
    same = known.hardware.processes == count()
    with threads(known.hardware.threads if same else recipe.settings.threads):
        trainer, _ = assemble(recipe, _splits(data))
        run.check_data(trainer.splits)
        _check_alike(recipe, trainer.splits)
        yield from _kept(trainer, run, recipe, "resumed")


def _again(recipe: Recipe, run: Run, data: Splits | None) -> Iterator[Event]:
    """Resume the run in a folder, if it has the same recipe and data."""
    differing = recipe.difference(run.recipe)
    if differing:
        raise UsageError(
            f"{run.path} holds a run of another recipe (it differs in {', '.join(differing[:5])}); "
            "choose another --run"
        )
    if run.finished:
        run.check_data(prepare(recipe, data)[0])
    yield from go_on(run, data=data)


def _kept(
    trainer: Trainer, run: Run, recipe: Recipe, state: Literal["new", "resumed"]
) -> Iterator[Event]:
    """Train to the end, and write everything into the run folder.

    Of several processes that train together, the first one writes.
    """
    with ExitStack() as until_done, noticing():
        first_does(lambda: until_done.enter_context(run.lock()))
        stop = until_done.enter_context(stop_on_signal())
        if from_first(run.finished):  # by another process, since we looked
            yield Opened(run, "finished")
            return
        if state == "resumed":
            first_does(run.note_resumed)
        yield Opened(run, state)
        try:
            yield from durable(trainer, run, stop)
            finish(trainer, run, recipe)
        except UnwritableFileError as error:
            raise OSError(
                f"{error}; what was saved before is kept. Once it can be written again, go on "
                f"with: unswayed resume {run.path}"
            ) from error


def _check_alike(recipe: Recipe, splits: Splits) -> None:
    """Refuse processes that would not train the same thing."""
    mine = {
        "version of unswayed": unswayed.__version__,
        "version of PyTorch": torch.__version__,
        "recipe": recipe.key(),
        "training data": splits.train.fingerprint(),
        "test data": splits.test and splits.test.fingerprint(),
    }
    for number, theirs in enumerate(of_all(mine)):
        differing = [name for name, value in mine.items() if theirs[name] != value]
        if differing and is_first():
            raise UsageError(
                f"process {number} has another {' and another '.join(differing)} than process 0; "
                "all processes must train the same recipe on the same data, with the same versions"
            )
        if differing:
            raise ToldElsewhereError("the first process refused to go on")


def _seen_by_all(path: Path) -> Run:
    """Return the run, which the first process has made and all must see."""
    hosts = of_all(None if (path / "recipe.toml").is_file() else socket.gethostname())
    blind = [f"process {number} on {host}" for number, host in enumerate(hosts) if host]
    if blind and is_first():
        raise UsageError(
            f"{', '.join(blind)} cannot see the run folder {path.absolute()}; put it on a disk "
            "that all machines share, with --run-folder"
        )
    if blind:
        raise ToldElsewhereError("the first process refused to go on")
    return Run(path)


def _recipe(recipe: Recipe | str | Path, overrides: tuple[str, ...], data: Splits | None) -> Recipe:
    if not isinstance(recipe, Recipe):
        first = ("data.name=memory",) if data is not None else ()
        recipe = Recipe.load(recipe, *first, *overrides)
    elif overrides:
        recipe = recipe.with_overrides(*overrides)
    if data is None:
        return recipe
    file = recipe.sections["data"].get(CORRECTED)
    return recipe.with_options("data", **{"name": "memory", CORRECTED: file})


def _splits(data: Any) -> Splits | None:
    """Return data given from Python as splits."""
    if data is None or isinstance(data, Splits):
        return data
    if isinstance(data, Dataset):
        return Splits(data, None)
    raise UsageError(
        f"data is a {type(data).__name__}; pass unswayed.Dataset or unswayed.Splits, made for "
        "example by Dataset.from_arrays, unswayed.data.from_torch or unswayed.data.from_huggingface"
    )


def is_taken(path: Path) -> bool:
    """Return whether a new run cannot be made there."""
    if path.is_dir():
        return any(path.iterdir()) or path.resolve() == Path.cwd()
    return path.exists()


def new_folder(name: str, under: Path = Path("runs")) -> Path:
    """Return a folder that does not exist yet."""
    path, number = under / name, 1
    while path.exists() or path.is_symlink():
        number += 1
        path = under / f"{name}-{number}"
    return path


def evaluate(run: Run, *, data: Splits | None = None) -> dict[str, Any]:
    """Measure the test accuracy of a finished run again, on the same test images.

    >>> import unswayed
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> found = unswayed.evaluate(run)
    >>> found["last"]["test_accuracy"] == run.summary.last.test_accuracy
    True

    Args:
        run: a finished run.
        data: the data, if the run was trained on data given from Python.
    """
    summary = run.summary
    test = (data or run.recipe.build("data")).test
    if test is None:
        raise UsageError(f"the data of {run.path} have no test images")
    if test.fingerprint() != run.provenance.data.test_fingerprint:
        raise UsageError(f"the test data are not those {run.path} was tested on")
    device = pick_device("auto")
    found: dict[str, Any] = {"run": str(run.path), "test_images": len(test)}
    for which in run.kept_weights():
        net = run.classifier(which).to(device)
        guess, truth = predictions(net, test), test.given
        numbers = getattr(summary, which)
        found[which] = {
            "epoch": numbers.epoch,
            "test_accuracy": accuracy(guess, truth),
            "per_class": {
                name: accuracy(guess[truth == k], truth[truth == k])
                for k, name in enumerate(test.classes)
                if (truth == k).any()
            },
        }
    return found
