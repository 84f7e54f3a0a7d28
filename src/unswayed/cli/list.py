"""List what a recipe can name: components, their options, defaults and papers."""

from __future__ import annotations

import argparse
from typing import Any

from unswayed import methods
from unswayed.errors import UsageError
from unswayed.recipe import REGISTRIES, SECTIONS, TABLES, TRAIN, shipped
from unswayed.registry import Component, did_you_mean
from unswayed.report.options import default_words

KINDS = ("recipes", "grids", "methods", *TABLES)
PLURALS = {
    "recipe": "recipes",
    "grid": "grids",
    "method": "methods",
    "noises": "noise",
    "view": "views",
    "losses": "loss",
    "optimizers": "optimizer",
    "schedules": "schedule",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", metavar="KIND", nargs="?", help=", ".join(KINDS))


def run(args: argparse.Namespace) -> int:
    """Print one kind, or all."""
    kind = args.kind
    if kind is not None:
        kind = PLURALS.get(kind, kind)
        kind = kind if kind in KINDS else kind.removesuffix("s")
        if kind not in KINDS:
            raise UsageError(f"there is nothing called {args.kind!r}; {did_you_mean(kind, KINDS)}")
    for number, each in enumerate([kind] if kind else KINDS):
        print(("\n" if number else "") + "\n".join(_lines(each)))
    return 0


def _lines(kind: str) -> list[str]:
    if kind == "recipes":
        return ["[recipes]", *(f"  {name}: {about}" for name, about in shipped().items())]
    if kind == "grids":
        return ["[grids]", *(f"  {name}: {about}" for name, about in shipped("grid").items())]
    if kind == "methods":
        return ["[methods]", *(line for name in methods.names() for line in _method(name))]
    if kind == "train":
        return ["[train]", *_options(TRAIN, "  ")]
    sections = [each for each in SECTIONS if f"{each}.".startswith(f"{kind}.")]
    registry = REGISTRIES[sections[0]]
    lines = [" and ".join(f"[{section}]" for section in sections)]
    for name in registry.names():
        component = registry[name]
        paper = f" ({component.paper})" if component.paper else ""
        lines += [
            f"  {name}: {component.summary.rstrip('.')}{paper}",
            *_options(component, "      "),
        ]
    return lines


def _method(name: str) -> list[str]:
    method = methods.get(name)
    origin = ", ".join(filter(None, (method.paper, method.equation)))
    lines = [f"  {name}: {method.title}" + (f" ({origin})" if origin else "")]
    presets = ", ".join(f"{name}/{preset}" for preset in method.presets)
    return lines + ([f"      presets: {presets}"] if presets else [])


def _options(component: Component[Any], indent: str) -> list[str]:
    return [
        f"{indent}{name} = {default_words(p)}{'  # ' * bool(text)}{text}"
        for name, p in component.options.items()
        for text in [component.help.get(name, "").rstrip(".")]
    ]
