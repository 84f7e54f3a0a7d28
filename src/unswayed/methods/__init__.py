"""Methods by name: choices of learner, loss, framework and regularizer, as papers name them.

Each is a TOML file in this folder. What it leaves out is plain cross entropy: the `regularized`
learner, the loss `ce`, no framework and no regularizer. Presets hold the options that papers and
published codes tuned for a data set and a kind of noise: `elr/cifar100`. A method may use those of
another: `presets = "ctrr"`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

PLAIN = {
    "learner.name": "regularized",
    "loss.name": "ce",
    "framework.name": "none",
    "regularizer.name": "none",
}


@dataclass(frozen=True)
class Method:
    """A method as its file describes it."""

    name: str
    title: str
    paper: str
    equation: str
    formula: str
    about: str  # when to use it
    forwards: float  # of a batch through a network, in one step
    backwards: float
    networks: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)  # loss.q and the like
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The work of a step relative to cross entropy; a backward pass counts as two forward."""
        return (self.forwards + 2 * self.backwards) / 3


def names() -> list[str]:
    """Return all methods: cross entropy first, then by name."""
    found = [f.name for f in resources.files(__name__).iterdir() if f.name.endswith(".toml")]
    return sorted((name.removesuffix(".toml") for name in found), key=lambda n: (n != "ce", n))


@cache
def get(name: str) -> Method:
    """Return a method by name."""
    if name not in names():
        raise UsageError(f"no method called {name!r}; {did_you_mean(name, names())}")
    file = resources.files(__name__) / f"{name}.toml"
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    if isinstance(presets := found.get("presets"), str):
        found["presets"] = get(presets).presets
    return Method(name=name, **found)


def load(text: str) -> dict[str, Any]:
    """Return the options that a method, or a method with a preset, sets in a recipe."""
    name, slash, preset = text.partition("/")
    method = get(name)
    if slash and preset not in method.presets:
        hint = did_you_mean(preset, method.presets)
        raise UsageError(f"the method {name!r} has no preset {preset!r}; {hint}")
    return {**PLAIN, **method.options, **(method.presets[preset] if slash else {})}
