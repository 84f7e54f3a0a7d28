"""A grid file: methods × settings × seeds, each a recipe.

A grid is a recipe with `methods` (the rows of a table), `settings` (its columns, each a list of
overrides) and `seeds` (how many). What it says itself, and the recipe it extends, lies below the
method; `set`, the column's words and those of a method's own `set` come after it, in that order.
`scales` holds variants of the whole, such as one for two cores, each laid over the rest entry by
entry. Everything is checked when a grid is loaded: no cell is trained of one that is wrong.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unswayed import methods
from unswayed.bench.published import Published, published
from unswayed.errors import UsageError
from unswayed.methods import Method
from unswayed.recipe import TABLES, Recipe, read
from unswayed.registry import did_you_mean

OWN = (
    "description",
    "extends",
    "seeds",
    "first_seed",
    "methods",
    "presets",
    "settings",
    "set",
    "published",
    "shape",
    "skip",
)
FULL = "full"
"""The scale that is meant where none is named."""

LETTERS = {"regularizer.weight": "λ", "regularizer.tau": "τ"}
"""What papers call an option."""

TRAINING = ("optimizer", "schedule", "train")
"""Sections in which all rows are alike but for what a row sets itself."""

TAKEN = ("train.seed", "train.threads", "method")
"""What a grid decides itself, cell by cell."""


@dataclass(frozen=True)
class Row:
    """A method of the grid, perhaps with a preset and options of its own."""

    key: str  # the name of its folder, unique in the grid
    label: str
    name: str  # `elr`, or `elr/cifar100`
    words: tuple[str, ...] = ()

    def for_column(self, presets: str, column: str) -> str:
        """Return its name with the preset that fits a column best, if there is one.

        Of `cifar100` and "sym 20" these are tried: cifar100-sym20, cifar100-sym, cifar100. Of
        `{column}` and "ANIMAL-10N" it is animal10n.
        """
        if "/" in self.name or not presets:
            return self.name
        kind, _, level = slug(column).replace(".", "").partition("-")
        first = presets.replace("{column}", kind + level)
        for name in (f"{first}-{kind}{level}", f"{first}-{kind}", first):
            if name in self.method.presets:
                return f"{self.name}/{name}"
        return self.name

    @property
    def method(self) -> Method:
        """What is known of the method."""
        return methods.get(self.name.partition("/")[0])


@dataclass(frozen=True)
class Cell:
    """One training."""

    row: Row
    column: str
    seed: int
    recipe: Recipe
    method: str  # with the preset of this column, `ctrr/cifar10-sym20`
    by_column: frozenset[str] = frozenset()  # options that the column sets

    @property
    def folder(self) -> str:
        """Where its run goes, below the folder of the grid."""
        return f"{self.row.key}/{slug(self.column)}/seed{self.seed}"

    @property
    def options(self) -> list[str]:
        """Options that are neither defaults nor of the method and its preset: `loss.q=0.5`.

        What a row sets itself of the training is one of them even if it is a default, since the
        other rows may have another value.
        """
        own = methods.load(self.method)
        found = []
        named = {word.partition("=")[0] for word in self.row.words}
        for place in ("learner", "loss", "framework", "regularizer", *TRAINING):
            component, options = self.recipe.component(place)
            if place in TRAINING:
                options = {k: v for k, v in options.items() if f"{place}.{k}" in named}
            plain = component.resolve({})
            found += [
                f"{place}.{key}={json.dumps(value)}"
                for key, value in options.items()
                if (place in TRAINING or value != plain[key])
                and not _same(value, own.get(f"{place}.{key}"))
                and f"{place}.{key}" not in self.by_column
            ]
        return found

    @property
    def settings(self) -> str:
        """What papers tune by data set and noise: `λ 50, τ 0.4, lr 0.02`."""
        said = [*methods.load(self.method), *(word.partition("=")[0] for word in self.row.words)]
        own = [key for key in said if key.startswith(("loss.", "learner."))]
        found = []
        for key in dict.fromkeys([*LETTERS, *own, "optimizer.lr"]):
            section, _, name = key.partition(".")
            value = self.recipe.sections[section].get(name)
            if isinstance(value, int | float):
                found.append(f"{LETTERS.get(key, name)} {value:g}")
            elif value is not None and key not in own:
                found.append(f"{LETTERS.get(key, name)} scheduled")
        return ", ".join(found)

    @property
    def title(self) -> str:
        """The cell in words."""
        return f"{self.row.key}, {self.column}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """How long it takes, in epochs of cross entropy."""
        return self.row.method.cost * self.recipe.settings.epochs


@dataclass(frozen=True)
class Grid:
    """A checked grid."""

    name: str
    description: str
    extends: str
    seeds: int
    rows: tuple[Row, ...]
    columns: Mapping[str, tuple[str, ...]]  # overrides by name
    cells: tuple[Cell, ...]
    published: Published | None = None  # the numbers that others have for these cells
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # of the data, by column

    @classmethod
    def load(
        cls,
        source: str | Path,
        scale: str = "",
        seeds: int | None = None,
        words: Sequence[str] = (),
    ) -> Grid:
        """Read a TOML file, or a shipped grid by name, and resolve the recipe of every cell.

        Args:
            source: a path or a name.
            scale: one of the grid's scales; "" is "full" where a grid has scales at all.
            seeds: how many, if not as many as the grid says.
            words: overrides for all cells, such as "data.root=DIR"; they win.
        """
        name, raw = read(source, "grid")
        name, raw = _scaled(name, raw, scale)
        for key in raw:
            if key not in (*OWN, *TABLES):
                raise UsageError(
                    f"the grid {name!r} has no {key!r}; {did_you_mean(key, (*OWN, *TABLES))}"
                )
        seeds = _whole(name, "seeds", raw.get("seeds", 1) if seeds is None else seeds, 1)
        first = _whole(name, "first_seed", raw.get("first_seed", 0), 0)
        rows = _rows(name, raw.get("methods"))
        columns = _columns(name, raw.get("settings"))
        below = {key: raw[key] for key in ("extends", *TABLES) if key in raw}
        if str(below.get("extends", "")).endswith(".toml"):
            below["extends"] = str(Path(source).parent / below["extends"])
        common = _words(raw.get("set", []), f"the grid {name!r}, set")
        last = _words(list(words), "on the command line")
        skip = _skip(name, raw.get("skip", {}), rows, columns)
        cells: list[Cell] = []
        for row in rows:
            for column, own_words in columns.items():
                if column in skip.get(row.key, ()):
                    continue
                method = row.for_column(str(raw.get("presets", "")), column)
                every = (*common, *own_words, *row.words, *last)
                own = frozenset(word.partition("=")[0] for word in (*own_words, *last))
                for seed in range(first, first + seeds):
                    said = [word.replace("{seed}", str(seed)) for word in every]
                    recipe = _recipe(name, below, row, method, column, said)
                    cells.append(Cell(row, column, seed, _with_seed(recipe, seed), method, own))
        about, extends = str(raw.get("description", "")), str(raw.get("extends", ""))
        others = published(raw["published"]) if "published" in raw else None
        shapes = _shapes(name, raw.get("shape", {}), columns)
        return cls(name, about, extends, seeds, rows, columns, tuple(cells), others, shapes)

    def only(self, names: Sequence[str]) -> list[Cell]:
        """Return the cells of these methods and columns, of all where none is named."""
        keys, columns = [row.key for row in self.rows], [slug(name) for name in self.columns]
        wanted = [slug(name) for name in names]
        for given, name in zip(names, wanted, strict=True):
            if name not in (*keys, *columns):
                raise UsageError(
                    f"the grid {self.name!r} has no method or column {given!r}; "
                    f"{did_you_mean(name, (*keys, *columns))}"
                )
        methods_ = [name for name in wanted if name in keys] or keys
        settings = [name for name in wanted if name in columns] or columns
        found = [c for c in self.cells if c.row.key in methods_ and slug(c.column) in settings]
        if not found:
            raise UsageError(f"the grid {self.name!r} leaves out {' with '.join(names)}")
        return found


def _skip(
    grid: str, table: Any, rows: Sequence[Row], columns: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the columns that a method leaves out."""
    if not isinstance(table, dict) or not all(isinstance(each, list) for each in table.values()):
        raise UsageError(f"the grid {grid!r}: skip is a table of methods and lists of columns")
    for method, left_out in table.items():
        for name, known in ((method, [row.key for row in rows]), *((c, columns) for c in left_out)):
            if name not in known:
                raise UsageError(
                    f"the grid {grid!r}: skip has {name!r}; {did_you_mean(name, known)}"
                )
    return table


@dataclass(frozen=True)
class Shape:
    """How much data there is, so that costs can be told without it."""

    samples: int
    side: int  # pixels
    classes: int
    channels: int = 3

    @classmethod
    def of(cls, grid: str, table: Any) -> Shape:
        """Return the shape that a grid states."""
        fields = ("samples", "side", "classes")
        if not isinstance(table, dict) or set(table) != set(fields):
            raise UsageError(f"the grid {grid!r}: shape has {', '.join(fields)}, and only these")
        return cls(**{key: _whole(grid, f"shape.{key}", table[key], 1) for key in fields})


def _shapes(grid: str, table: Any, columns: Mapping[str, Any]) -> dict[str, Shape]:
    """Return the shape of the data in each column; a grid states one for all or one for each."""
    if not isinstance(table, dict):
        raise UsageError(f"the grid {grid!r}: shape is a table, not {table!r}")
    if "samples" in table:
        return dict.fromkeys(columns, Shape.of(grid, table))
    for column in table:
        if column not in columns:
            raise UsageError(
                f"the grid {grid!r}: shape is of {column!r}; {did_you_mean(column, columns)}"
            )
    return {column: Shape.of(grid, each) for column, each in table.items()}


def _scaled(name: str, raw: Mapping[str, Any], scale: str) -> tuple[str, dict[str, Any]]:
    """Return name and entries of a grid at a scale; what the scale says replaces whole entries."""
    scales = raw.get("scales", {})
    if not isinstance(scales, dict) or not all(isinstance(t, dict) for t in scales.values()):
        raise UsageError(f"the grid {name!r}: scales is a table of tables")
    wanted = scale or (FULL if scales else "")
    plain = {key: value for key, value in raw.items() if key != "scales"}
    if not wanted or (wanted == FULL and FULL not in scales):
        return name, plain
    if wanted not in scales:
        known = list(dict.fromkeys([FULL, *scales]))
        raise UsageError(
            f"the grid {name!r} has no scale {wanted!r}; {did_you_mean(wanted, known)}"
        )
    return (name if wanted == FULL else f"{name}-{wanted}"), {**plain, **scales[wanted]}


def _whole(grid: str, key: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"the grid {grid!r}: {key} is {value!r}; it is whole, from {least} on")
    return value


def _same(value: Any, set_by_method: Any) -> bool:
    """Return whether an option is what the method makes it; of a table, in what the method says."""
    if isinstance(value, dict) and isinstance(set_by_method, dict):
        return all(value.get(key) == inner for key, inner in set_by_method.items())
    return bool(value == set_by_method)


def slug(text: str) -> str:
    """Return a name that any file system takes: `sym 20 %` becomes `sym-20`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9._]+", "-", plain.lower()).strip("-.")


def _rows(grid: str, entries: Any) -> tuple[Row, ...]:
    if not isinstance(entries, list) or not entries:
        raise UsageError(
            f"the grid {grid!r} needs methods, a list of names (see: unswayed list methods)"
        )
    rows = tuple(_row(grid, entry) for entry in entries)
    _refuse_twins(grid, "methods", [row.key for row in rows])
    return rows


def _row(grid: str, entry: Any) -> Row:
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise UsageError(
            f"the grid {grid!r}: the method {entry!r} is no name and no table with one"
        )
    for key in table:
        if key not in ("name", "label", "set"):
            hint = did_you_mean(key, ("name", "label", "set"))
            raise UsageError(f"the grid {grid!r}: the method {table['name']!r} has {key!r}; {hint}")
    where = f"the grid {grid!r}, method {table['name']!r}"
    try:
        methods.load(table["name"])
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    name, _, preset = table["name"].partition("/")
    title = methods.get(name).title + (f" ({preset})" if preset else "")
    key = slug(str(table.get("label", table["name"])))
    if not key:
        raise UsageError(f"{where}: the label {table['label']!r} has no letter and no digit")
    label = str(table.get("label", title))
    return Row(key, label, table["name"], _words(table.get("set", []), where))


def _columns(grid: str, settings: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(settings, dict) or not settings:
        raise UsageError(
            f"the grid {grid!r} needs settings, a table of columns and their overrides"
        )
    found = {name: _words(w, f"the grid {grid!r}, column {name!r}") for name, w in settings.items()}
    _refuse_twins(grid, "columns", [slug(name) for name in found])
    return found


def _refuse_twins(grid: str, what: str, names: Sequence[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise UsageError(
            f"the grid {grid!r} has two {what} with the folder {twins[0]!r}; give one another name"
            + (" by a label" if what == "methods" else "")
        )
    if "" in names:
        raise UsageError(f"the grid {grid!r}: a name in {what} has no letter and no digit")


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f'{where}: {value!r} is no list of words such as ["noise.rate=0.4"]')
    for word in value:
        if word.partition("=")[0].strip() in TAKEN:
            raise UsageError(f"{where}: {word!r} is not for a grid to set; it runs over it itself")
    return tuple(value)


def _recipe(
    grid: str,
    below: Mapping[str, Any],
    row: Row,
    method: str,
    column: str,
    words: Sequence[str],
) -> Recipe:
    try:
        # One thread a cell: as many cells as there are cores run side by side.
        return Recipe.from_dict(below, f"method={method}", *words, "train.threads=1", name=grid)
    except UsageError as error:
        raise UsageError(f"the grid {grid!r}, method {row.key!r}, {column!r}: {error}") from error


def _with_seed(recipe: Recipe, seed: int) -> Recipe:
    return recipe.with_options("train", **{**recipe.sections["train"], "seed": seed})
