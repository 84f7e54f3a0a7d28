"""Recipe -> Run. The one place that knows every part, and that picks the device."""

from __future__ import annotations

import os
import platform
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unswayed
from unswayed.data import Dataset, Splits
from unswayed.errors import UsageError
from unswayed.learners import Classifier
from unswayed.noise import Noise, realised
from unswayed.randomness import torch_seed
from unswayed.recipe import Recipe
from unswayed.training.budget import PROBED, Budget, epochs_within
from unswayed.training.durable import durable, stop_on_signal
from unswayed.training.evaluate import accuracy, predictions
from unswayed.training.finish import finish
from unswayed.training.run import Run
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Step
from unswayed.views import Policy

Watch = Callable[[Step | Epoch], None]
Begin = Callable[[Run], None]


def train(
    recipe: Recipe | str | Path = "digits",
    *overrides: str,
    run: str | Path | None = None,
    data: Splits | None = None,
    watch: Watch | None = None,
    begin: Begin | None = None,
) -> Run:
    """Train what a recipe says, and return the finished run.

    A run folder that already holds this recipe is continued, or returned if it is finished.

    Args:
        recipe: a `Recipe`, a TOML file, or the name of a shipped recipe.
        *overrides: words such as "noise.rate=0.4".
        run: the folder; a new one under `runs/` if not given.
        data: your own data in place of the recipe's `data` section.
        watch: called with every `Step` and `Epoch`.
        begin: called with the run once its folder is there and training is about to start.
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.load(recipe, *overrides)
    elif overrides:
        recipe = Recipe.from_dict(recipe.sections, *overrides, name=recipe.name)
    if data is not None:
        recipe = recipe.with_options("data", name="memory")
    path = None if run is None else Path(run)
    if path is not None and (path / "recipe.toml").is_file():
        _check_same(recipe, path)
        if Run(path).finished:
            _check_data(Run(path), *prepare(recipe, data)[0])
        return resume(path, data=data, watch=watch, begin=begin)
    if path is not None and _is_taken(path):
        raise UsageError(f"{path} is not empty and not a run folder; choose another")
    with threads(recipe.settings.threads):
        splits, noise = prepare(recipe, data)
        resolved = resolve(recipe, splits)
        trainer = make_trainer(settled(recipe, resolved), splits)
        made = Run.create(
            path or new_folder(recipe.name),
            recipe.to_toml(),
            {"name": recipe.name, "resolved": resolved, **provenance(trainer, noise)},
            trainer.train,
            trainer.holdout,
        )
        return _fit(trainer, made, recipe, watch, begin)


def resume(
    path: str | Path,
    *,
    data: Splits | None = None,
    watch: Watch | None = None,
    begin: Begin | None = None,
) -> Run:
    """Go on with an interrupted run from its newest good state; a finished one is returned."""
    run = Run(path)
    if run.finished:
        return run
    recipe = Recipe.load(run.path / "recipe.toml")
    if run.has_state() and "weights" in recipe.sections["model"]:
        model = {**recipe.sections["model"], "weights": None}  # the state holds newer ones
        recipe = recipe.with_options("model", **model)
    recipe = settled(recipe, run.provenance.get("resolved", {}))
    with threads(run.provenance["hardware"]["threads"]):
        trainer, _ = assemble(recipe, data)
        _check_data(run, *trainer.splits)

        def go_on(run: Run) -> None:
            run.note_resumed(commit())
            if begin is not None:
                begin(run)

        return _fit(trainer, run, recipe, watch, go_on)


def _is_taken(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir()) or path.resolve() == Path.cwd()
    return path.exists()


def _check_data(run: Run, train: Dataset, test: Dataset | None) -> None:
    known = run.provenance["data"]
    found = {"fingerprint": train.fingerprint(), "test_fingerprint": test and test.fingerprint()}
    for name, value in found.items():
        if known[name] != value:
            which = "test" if name.startswith("test") else "training"
            raise UsageError(f"the {which} data are not those {run.path} was started with")


def _fit(
    trainer: Trainer, run: Run, recipe: Recipe, watch: Watch | None, begin: Begin | None
) -> Run:
    with run.lock(), stop_on_signal() as stop:
        if run.finished:  # by another process, since we looked
            return run
        rows = _restore(trainer, run)
        if begin is not None:
            begin(run)
        for event in durable(trainer, run, rows, stop):
            if watch is not None:
                watch(event)
        finish(trainer, run, recipe.sections["model"], run.provenance["name"])
    return run


def _restore(trainer: Trainer, run: Run) -> list[dict[str, Any]]:
    """Load the newest good state, and return the metrics it knew."""
    tensors, plain, damaged = run.newest_state()
    for name in damaged:
        warnings.warn(
            f"the checkpoint {name} is damaged and was set aside; going on from an older state",
            stacklevel=2,
        )
    if tensors:
        trainer.load_state(tensors, plain)
    rows: list[dict[str, Any]] = plain.get("metrics", [])
    run.rewind(trainer.epoch, rows)
    return rows


def assemble(recipe: Recipe, data: Splits | None = None) -> tuple[Trainer, Noise]:
    """Build everything a recipe names, and write nothing."""
    splits, noise = prepare(recipe, data)
    return make_trainer(settled(recipe, resolve(recipe, splits)), splits), noise


def resolve(recipe: Recipe, splits: Splits) -> dict[str, Any]:
    """Return the options of `train` that depend on this machine or on what an epoch costs."""
    settings = recipe.settings
    found: dict[str, Any] = {}
    if settings.precision == "auto":
        native = has_bf16(pick_device(settings.device))
        found["precision"] = "bf16" if native else "fp32"
    if settings.budget:
        probe = make_trainer(settled(recipe, {**found, "epochs": PROBED}), splits)
        found["epochs"] = epochs_within(Budget.parse(settings.budget), probe)
    return found


def settled(recipe: Recipe, resolved: Mapping[str, Any]) -> Recipe:
    """Return the recipe with what `resolve` found in place of what it was found from."""
    budget = {"budget": ""} if "epochs" in resolved else {}
    return recipe.with_options("train", **{**recipe.sections["train"], **resolved, **budget})


def make_trainer(recipe: Recipe, splits: Splits) -> Trainer:
    """Build everything but the data."""
    settings = recipe.settings
    device = pick_device(settings.device)
    check_precision(settings.precision, device)
    train, test = splits
    facts = facts_of(train)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(settings.seed, "initial weights"))
        backbone = recipe.build("model", facts)
        facts |= {"backbone": backbone, "feature_dim": backbone.feature_dim}
        statistics = train.channel_statistics()

        def new_classifier() -> Classifier:
            return Classifier(recipe.build("model", facts), train.num_classes, *statistics)

        classifier = Classifier(backbone, train.num_classes, *statistics)
        facts |= {"classifier": classifier, "new_classifier": new_classifier}
        facts |= {"run_seed": settings.seed, **_known_noise(train)}
        for part in ("loss", "framework", "regularizer"):
            facts[part] = recipe.build(part, facts)
        learner = recipe.build("learner", facts)
    policy = Policy(
        recipe.build("views.weak", facts), recipe.build("views.strong", facts), settings.seed
    )
    optimizer, schedule = recipe.build("optimizer"), recipe.build("schedule")
    return Trainer(learner, policy, train, test, settings, optimizer, schedule, device)


def prepare(recipe: Recipe, data: Splits | None = None) -> tuple[Splits, Noise]:
    """Return the data as they are trained and tested on, and the noise that was put into them."""
    clean, test = data if data is not None else recipe.build("data")
    _check_fit(clean, test)
    noise: Noise = recipe.build("noise", facts_of(clean))
    given = noise.corrupt(clean.given, clean.keys, recipe.settings.seed)
    noisy = clean if np.array_equal(given, clean.given) else clean.with_given(given)
    return Splits(noisy, test), noise


def facts_of(data: Dataset) -> dict[str, Any]:
    """Return what constructors may ask for once the data are known."""
    return {
        "num_classes": data.num_classes,
        "num_samples": len(data),
        "in_channels": data.channels,
        "image_size": data.image_size,
        "images": data.images,
    }


def _known_noise(data: Dataset) -> dict[str, Any]:
    """Return the realised rate and matrix of wrong labels, None where true labels are unknown."""
    if data.true is None:
        return {"known_rate": None, "known_matrix": None}
    rate, matrix = realised(data.true, data.given, data.num_classes)
    return {"known_rate": rate, "known_matrix": matrix}


def _check_fit(train: Dataset, test: Dataset | None) -> None:
    if test is None:
        return
    if test.classes != train.classes:
        raise UsageError(f"training and test classes differ: {train.classes} and {test.classes}")
    if (test.channels, test.image_size) != (train.channels, train.image_size):
        raise UsageError(
            f"training and test images differ in shape: {tuple(train.images.shape[1:])} and "
            f"{tuple(test.images.shape[1:])}"
        )


def _check_same(recipe: Recipe, path: Path) -> None:
    differing = recipe.difference(Recipe.load(path / "recipe.toml"))
    if differing:
        raise UsageError(
            f"{path} holds a run of another recipe (it differs in {', '.join(differing[:5])}); "
            "choose another --run"
        )


def new_folder(name: str, under: Path = Path("runs")) -> Path:
    """Return a folder that does not exist yet."""
    path, number = under / name, 1
    while path.exists() or path.is_symlink():
        number += 1
        path = under / f"{name}-{number}"
    return path


def evaluate(run: Run, *, data: Splits | None = None) -> dict[str, Any]:
    """Test a finished run's weights again, on the test images it was tested on.

    Args:
        run: a finished run.
        data: the data, if the run was trained on data given from Python.
    """
    summary = run.summary
    test = (data or Recipe.load(run.path / "recipe.toml").build("data")).test
    if test is None:
        raise UsageError(f"the data of {run.path} have no test images")
    if test.fingerprint() != run.provenance["data"]["test_fingerprint"]:
        raise UsageError(f"the test data are not those {run.path} was tested on")
    device = pick_device("auto")
    found: dict[str, Any] = {"run": str(run.path), "test_images": len(test)}
    for which in run.kept_weights():
        net = run.classifier(which).to(device)
        guess, truth = predictions(net, test), test.given
        found[which] = {
            "epoch": summary[which]["epoch"],
            "test_accuracy": accuracy(guess, truth),
            "per_class": {
                name: accuracy(guess[truth == k], truth[truth == k])
                for k, name in enumerate(test.classes)
                if (truth == k).any()
            },
        }
    return found


def pick_device(name: str) -> torch.device:
    """Return the device of this name; "auto" takes CUDA, then MPS, then the CPU."""
    present = ["cpu"]
    if torch.backends.mps.is_available():
        present.insert(0, "mps")
    if torch.cuda.is_available():
        present[:0] = [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    if name == "auto":
        return torch.device(present[0])
    if name not in (*present, "cuda" if torch.cuda.is_available() else "cpu"):
        raise UsageError(
            f"train.device: there is no device {name!r} here; there are: auto, {', '.join(present)}"
        )
    return torch.device(name)


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse bf16 where it would only be emulated, many times slower than fp32."""
    if precision == "bf16" and not has_bf16(device):
        raise UsageError(f"train.precision: this {device.type} has no bf16 units; use fp32")


def has_bf16(device: torch.device) -> bool:
    """Return whether the device computes in bf16, and does not merely emulate it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return device.type == "cpu" and bool(native)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use this many CPU threads inside the block; 0 changes nothing."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def provenance(trainer: Trainer, noise: Noise) -> dict[str, Any]:
    """Return what is needed to trace a number back to its origin."""
    data = trainer.train
    found: dict[str, Any] = {
        "unswayed": unswayed.__version__,
        "commit": commit(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": trainer.settings.seed,
        "data": {
            "fingerprint": data.fingerprint(),
            "test_fingerprint": trainer.test and trainer.test.fingerprint(),
            "samples": len(data),
            "skipped": len(data.skipped),
            "trained_on": len(trainer.rows),
            "held_out": len(trainer.holdout),
            "test": len(trainer.test) if trainer.test is not None else 0,
            "classes": list(data.classes),
        },
        "noise": {"convention": noise.convention, "expected_matrix": noise.matrix().tolist()},
        "hardware": {
            "device": str(trainer.device),
            "name": _processor(trainer.device),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "platform": platform.platform(),
        },
        "software": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    }
    if data.true is not None:
        rate, matrix = realised(data.true, data.given, data.num_classes)
        found["noise"] |= {"realised_rate": rate, "realised_matrix": matrix.tolist()}
    return found


@cache
def commit() -> str | None:
    """Return the commit of a source checkout, with a mark if the package had changes in it.

    Other files, such as saved results, do not count. None where there is no checkout of ours: an
    environment may lie in the repository of somebody else. A process asks once: what it has
    imported does not change with the files.
    """
    try:
        if not _git("ls-files", Path(__file__).name):
            return None
        return _git("rev-parse", "HEAD") + ("-dirty" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.TimeoutExpired):
        return None


def _git(*words: str) -> str:
    """Return what git says of the package's folder; nothing where it cannot."""
    said = subprocess.run(
        ["git", *words],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return said.stdout.strip()


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor()
