"""Recipe -> Run. The one place that knows every part, and that picks the device."""

from __future__ import annotations

import os
import platform
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unswayed
from unswayed.data import Dataset, Splits
from unswayed.errors import UsageError
from unswayed.learners import Classifier
from unswayed.learners.regularized import Regularized
from unswayed.noise import Noise, realised
from unswayed.randomness import torch_seed
from unswayed.recipe import Recipe
from unswayed.training.durable import durable, stop_on_signal
from unswayed.training.evaluate import accuracy, predictions
from unswayed.training.finish import finish
from unswayed.training.run import Run
from unswayed.training.trainer import Trainer
from unswayed.types import Epoch, Step
from unswayed.views import Policy

Watch = Callable[[Step | Epoch], None]


def train(
    recipe: Recipe | str | Path = "digits",
    *overrides: str,
    run: str | Path | None = None,
    data: Splits | None = None,
    watch: Watch | None = None,
) -> Run:
    """Train what a recipe says, and return the finished run.

    A run folder that already holds this recipe is continued, or returned if it is finished.

    Args:
        recipe: a `Recipe`, a TOML file, or the name of a shipped recipe.
        *overrides: words such as "noise.rate=0.4".
        run: the folder; a new one under `runs/` if not given.
        data: your own data in place of the recipe's `data` section.
        watch: called with every `Step` and `Epoch`.
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.load(recipe, *overrides)
    elif overrides:
        recipe = Recipe.from_dict(recipe.sections, *overrides, name=recipe.name)
    path = Path(run) if run is not None else new_folder(recipe.name)
    if (path / "recipe.toml").is_file():
        _check_same(recipe, path)
        return resume(path, data=data, watch=watch)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} is not empty and not a run folder; choose another --run")
    with threads(recipe.settings.threads):
        trainer, noise = assemble(recipe, data)
        made = Run.create(
            path, recipe.to_toml(), provenance(trainer, noise), trainer.train, trainer.holdout
        )
        return _fit(trainer, made, recipe, watch)


def resume(path: str | Path, *, data: Splits | None = None, watch: Watch | None = None) -> Run:
    """Go on with an interrupted run from its newest good state; a finished one is returned."""
    run = Run(path)
    if run.finished:
        return run
    recipe = Recipe.load(run.path / "recipe.toml")
    with threads(run.provenance["hardware"]["threads"]):
        trainer, _ = assemble(recipe, data)
        if trainer.train.fingerprint() != run.provenance["data"]["fingerprint"]:
            raise UsageError(
                f"the data have changed since {run.path} was started; train a new run instead"
            )
        return _fit(trainer, run, recipe, watch)


def _fit(trainer: Trainer, run: Run, recipe: Recipe, watch: Watch | None) -> Run:
    with run.lock(), stop_on_signal() as stop:
        if run.finished:  # by another process, since we looked
            return run
        _restore(trainer, run)
        for event in durable(trainer, run, stop):
            if watch is not None:
                watch(event)
        finish(trainer, run, recipe.sections["model"], recipe.name)
    return run


def _restore(trainer: Trainer, run: Run) -> None:
    tensors, plain, damaged = run.newest_state()
    for name in damaged:
        warnings.warn(
            f"the checkpoint {name} is damaged and was set aside; going on from an older state",
            stacklevel=2,
        )
    if tensors:
        trainer.load_state(tensors, plain)
    run.rewind(trainer.epoch)


def assemble(recipe: Recipe, data: Splits | None = None) -> tuple[Trainer, Noise]:
    """Build everything a recipe names, and write nothing."""
    settings = recipe.settings
    device = pick_device(settings.device)
    check_precision(settings.precision, device)
    splits: Splits = data if data is not None else recipe.build("data")
    clean, test = splits
    _check_fit(clean, test)
    facts: dict[str, Any] = {
        "num_classes": clean.num_classes,
        "num_samples": len(clean),
        "in_channels": clean.channels,
        "image_size": clean.image_size,
    }
    noise: Noise = recipe.build("noise", facts)
    given = noise.corrupt(clean.given, clean.keys, settings.seed)
    noisy = clean if np.array_equal(given, clean.given) else clean.with_given(given)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(settings.seed, "initial weights"))
        backbone = recipe.build("model", facts)
        facts |= {"backbone": backbone, "feature_dim": backbone.feature_dim}
        learner = Regularized(
            Classifier(backbone, clean.num_classes, *clean.channel_statistics()),
            recipe.build("loss", facts),
            recipe.build("framework", facts),
            recipe.build("regularizer", facts),
        )
    policy = Policy(
        recipe.build("views.weak", facts), recipe.build("views.strong", facts), settings.seed
    )
    return Trainer(learner, policy, noisy, test, settings, device), noise


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
    while path.exists():
        number += 1
        path = under / f"{name}-{number}"
    return path


def evaluate(run: Run) -> dict[str, Any]:
    """Test a finished run's weights again, on the test images of its recipe."""
    recipe = Recipe.load(run.path / "recipe.toml")
    splits: Splits = recipe.build("data")
    if splits.test is None:
        raise UsageError(f"the data of {run.path} have no test images")
    device = pick_device("auto")
    found: dict[str, Any] = {"run": str(run.path), "test_images": len(splits.test)}
    for which in ("last", "selected"):
        if which == "selected" and run.summary["selected"] is None:
            continue
        net = run.classifier(which).to(device)
        guess, truth = predictions(net, splits.test), splits.test.given
        found[which] = {
            "epoch": run.summary[which]["epoch"],
            "test_accuracy": accuracy(guess, truth),
            "per_class": {
                name: accuracy(guess[truth == k], truth[truth == k])
                for k, name in enumerate(splits.test.classes)
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
    if precision == "fp32":
        return
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = device.type == "cpu" and (
            torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        )
    if not native:
        raise UsageError(f"train.precision: this {device.type} has no bf16 units; use fp32")


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
        "commit": _commit(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": trainer.settings.seed,
        "data": {
            "fingerprint": data.fingerprint(),
            "samples": len(data),
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


def _commit() -> str | None:
    """Return the commit of a source checkout, with a mark if it had changes; None elsewhere."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor()
