"""Numbers that others published, from published.toml: the only place where they are written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from unswayed.errors import UsageError
from unswayed.registry import did_you_mean
from unswayed.report.table import Spread

NUMBERS = ("oracle_best", "last")
RUNS = 3
"""Over how many runs every published mean is."""


@dataclass(frozen=True)
class Published:
    """A published table; accuracies are fractions here, as everywhere in the package."""

    name: str
    title: str
    source: str
    note: str
    columns: tuple[str, ...]
    numbers: Mapping[str, Mapping[tuple[str, str], Spread]]  # by kind, then by row and column

    def get(self, number: str, row: str, column: str) -> Spread | None:
        """Return a number such as `("oracle_best", "ctrr", "sym 80")`; None if there is none."""
        return self.numbers.get(number, {}).get((row, column))


def names() -> list[str]:
    """Return the names of all published tables."""
    return list(_file())


@cache
def published(name: str) -> Published:
    """Return a published table by name, such as "table1"."""
    if name not in names():
        raise UsageError(f"no published table called {name!r}; {did_you_mean(name, names())}")
    raw = _file()[name]
    columns = tuple(raw["columns"])
    numbers = {
        kind: {
            (row, column): _spread(entry)
            for row, entries in raw[kind].items()
            for column, entry in zip(columns, entries, strict=True)
            if entry
        }
        for kind in NUMBERS
        if kind in raw
    }
    return Published(name, raw["title"], raw["source"], raw.get("note", ""), columns, numbers)


@cache
def _file() -> dict[str, dict[str, Any]]:
    file = resources.files("unswayed.bench") / "published.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _spread(entry: list[float]) -> Spread:
    if len(entry) == RUNS:
        return Spread.of([each / 100 for each in entry])
    mean, deviation = entry
    return Spread(mean / 100, deviation / 100, RUNS)
