"""The paper's figures, and two that it lacks: each measures something, and draws what it measured.

A figure is a module with `measure` and `draw`. `measure` trains what it needs as runs below a
folder, goes on where it was stopped, and returns what goes into a JSON file; `draw` makes a
Matplotlib figure of that and of nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.registry import did_you_mean
from unswayed.training.run import Run

Measured = dict[str, Any]
Train = Callable[[Recipe, Path], Run]
"""Trains a recipe in a folder, or returns the finished run that is there."""

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


def figure(name: str) -> ModuleType:
    """Return the module of a figure."""
    if name not in NAMES:
        raise UsageError(f"no figure called {name!r}; {did_you_mean(name, NAMES)}")
    try:
        return importlib.import_module(f"unswayed.figures.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("matplotlib"):
            raise UsageError("figures need Matplotlib: pip install 'unswayed[figures]'") from error
        raise
