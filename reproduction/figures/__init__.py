"""The paper's figures, and three that it lacks.

A figure is a module with `measure` and `draw`. `measure` trains what it needs and returns what goes
into a JSON file. `draw` makes a Matplotlib figure of that and of nothing else.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from unswayed.data import Dataset, Splits
from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.registry import did_you_mean
from unswayed.runs import Run, runs_by_key
from unswayed.session import Watch, train

Measured = dict[str, Any]


def _unwatched(_title: str) -> AbstractContextManager[Watch | None]:
    return nullcontext()


@dataclass(frozen=True)
class Lab:
    """Where and how a figure trains what it needs."""

    folder: Path
    seeds: int = 3
    fit: Callable[[Recipe, Path], Run] = lambda recipe, folder: train(recipe, run=folder)
    """Trains a recipe in a folder, or returns the finished run that is there."""

    watching: Callable[[str], AbstractContextManager[Watch | None]] = _unwatched
    """Shows the events of a training that has no run folder."""

    def train(self, recipe: Recipe, *overrides: str, seed: int, name: str) -> tuple[Recipe, Run]:
        """Train a recipe with overrides, and return it with its run.

        What a grid or another figure has trained in a folder beside this one is not trained again.
        """
        own = with_overrides(recipe, *overrides, seed=seed)
        folder = place(self.folder, name, own)
        if folder.exists():
            return own, self.fit(own, folder)
        known = runs_by_key(self.folder.parent, ignoring=["train.threads"])
        return own, known.get(own.key(["train.threads"])) or self.fit(own, folder)


def place(folder: Path, name: str, recipe: Recipe) -> Path:
    """Return where a training goes; one of another recipe goes elsewhere."""
    digest = hashlib.sha256(recipe.to_toml().encode()).hexdigest()[:8]
    return folder / f"{name}-seed{recipe.settings.seed}-{digest}"


def with_overrides(recipe: Recipe, *overrides: str, seed: int) -> Recipe:
    """Return a recipe with overrides and a seed."""
    return recipe.with_overrides(*overrides, f"train.seed={seed}")


def need_noise(recipe: Recipe) -> None:
    """Refuse a recipe whose labels are all right, before anything is trained."""
    if recipe.sections["noise"]["name"] == "none":
        raise UsageError(
            "this figure is about wrong labels whose true ones are known, and this recipe puts in "
            "none; add for example noise.name=symmetric noise.rate=0.4"
        )


def need_test(splits: Splits) -> Dataset:
    """Return the test images; data without any are refused."""
    if splits.test is None:
        raise UsageError("this figure shows test images, and these data have none")
    return splits.test


def need_contrast(recipe: Recipe) -> None:
    """Refuse a recipe without a contrast."""
    if recipe.sections["regularizer"]["name"] == "none":
        raise UsageError("this figure needs a recipe with a contrast; add for example method=ctrr")


NAMES = {
    "representations": "fig. 1: features in the plane, by true and by given label",
    "gradcam": "fig. 2: where a network looks that was trained on clean or on noisy labels",
    "memorisation": "fig. 3: what a linear layer on frozen features makes of wrong labels",
    "sweeps": "fig. 4: accuracy over λ and τ",
    "gradient-share": "what part of the contrast's gradient comes from wrong pairs",
    "pair-precision": "how many of the pairs that attract are of one class, epoch by epoch",
    "information": "what frozen features tell of true and of wrong labels, in bits",
}
"""Name and subject of each figure."""

FROM_GRIDS = ("sweeps",)
"""These train nothing, but show what grids have trained."""

ONE_SEED = ("representations", "gradcam")
"""These show networks, not means."""


def figure(name: str) -> ModuleType:
    """Return the module of a figure."""
    if name not in NAMES:
        raise UsageError(f"no figure called {name!r}; {did_you_mean(name, NAMES)}")
    try:
        return importlib.import_module(f"reproduction.figures.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("matplotlib"):
            raise UsageError("figures need Matplotlib: pip install 'unswayed[bench]'") from error
        raise
