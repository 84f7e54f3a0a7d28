"""Read a grid: methods × settings × seeds. Every cell is a recipe.

A grid is a recipe with `methods` (the rows of a table), `settings` (its columns, each a list of
overrides) and `seeds` (how many). The last value wins, in this order: the recipe that the grid
extends, the grid's own sections, the method, `set`, what was `tuned` for the method, the column's
overrides, the method's own `set`, the overrides of the command line. `scales` holds variants of the
grid. An entry of a scale replaces that entry of the grid. A grid is checked when it is loaded,
before any cell is trained.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as checked_dataclass

from unswayed import methods
from unswayed.bench.published import Published
from unswayed.errors import UsageError
from unswayed.methods import Method
from unswayed.recipe import TABLES, Recipe
from unswayed.recipe import read as read_file
from unswayed.registry import did_you_mean

FULL = "full"
"""The scale of a grid if none is named."""

LETTERS = {"regularizer.weight": "λ", "regularizer.tau": "τ"}
"""The letters that papers use for options."""

TRAINING = ("views.weak", "views.strong", "optimizer", "schedule", "train")
"""Sections that all rows share, except for what a row sets itself."""

TAKEN = ("train.seed", "train.threads", "method")
"""What the grid itself sets for each cell."""

NEEDED = {
    ("methods",): "methods, a list of names (see: unswayed list methods)",
    ("settings",): "settings, a table of columns and their overrides",
}


def slug(text: str) -> str:
    """Return a name for any file system: `sym 20 %` becomes `sym-20`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9._]+", "-", plain.lower()).strip("-.")


def _overrides(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError(f'{value!r} is no list of overrides such as ["noise.rate=0.4"]')
    for each in value:
        if _key(each) in TAKEN:
            raise ValueError(f"{each!r} is not for a grid to set; it runs over it itself")
    return tuple(value)


def _key(override: str) -> str:
    return override.partition("=")[0].strip()


Overrides = Annotated[tuple[str, ...], BeforeValidator(_overrides)]


class GridRow(BaseModel):
    """A method of the grid, perhaps with a preset (`elr/cifar100`) and options of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    label: str = ""
    set: Overrides = ()

    @model_validator(mode="before")
    @classmethod
    def _name_or_table(cls, entry: Any) -> Any:
        table = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise ValueError(f"{entry!r} is no name and no table with one")
        return table

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        methods.load(name)
        return name

    @field_validator("label")
    @classmethod
    def _readable(cls, label: str) -> str:
        if not slug(label):
            raise ValueError(f"the label {label!r} has no letter and no digit")
        return label

    @property
    def key(self) -> str:
        """The name of its folder, unique in the grid."""
        return slug(self.label or self.name)

    @property
    def title(self) -> str:
        """Its name in tables."""
        preset = self.name.partition("/")[2]
        return self.label or self.method.title + (f" ({preset})" if preset else "")

    @property
    def method(self) -> Method:
        """The method itself."""
        return methods.get(self.name.partition("/")[0])

    def for_column(self, presets: str, column: str) -> str:
        """Return its name with the preset that fits a column best, if there is one.

        For `cifar100` and "sym 20" these are tried: cifar100-sym20, cifar100-sym, cifar100. For
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


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Shape:
    """The shape of the data. With it, costs can be estimated without the data."""

    samples: PositiveInt
    side: PositiveInt  # pixels
    classes: PositiveInt
    channels: PositiveInt = 3


class GridFile(BaseModel):
    """The keys of a grid file besides the sections of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str = ""
    extends: str = ""
    seeds: int = Field(1, ge=1, le=1000, strict=True)
    first_seed: int = Field(0, ge=0, strict=True)
    methods: tuple[GridRow, ...] = Field(min_length=1)
    presets: str = ""
    settings: dict[str, Overrides] = Field(min_length=1)
    set: Overrides = ()
    published: str = ""  # a TOML file, relative to the grid's
    tuned: str = ""  # a TOML file of overrides by method, relative to the grid's
    shape: dict[str, Shape] = {}  # by column
    skip: dict[str, list[str]] = {}  # columns that a method leaves out

    @field_validator("methods", "settings")
    @classmethod
    def _folders_differ(cls, value: Any, info: ValidationInfo) -> Any:
        rows = info.field_name == "methods"
        names = [row.key for row in value] if rows else [slug(name) for name in value]
        what, hint = ("methods", " by a label") if rows else ("columns", "")
        if "" in names:
            raise ValueError(f"a name in {what} has no letter and no digit")
        if twin := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(
                f"there are two {what} with the folder {twin!r}; give one another name{hint}"
            )
        return value

    @field_validator("shape", mode="before")
    @classmethod
    def _for_every_column(cls, table: Any, info: ValidationInfo) -> Any:
        columns = info.data.get("settings", {})
        if not isinstance(table, dict):
            raise ValueError(f"shape is a table, not {table!r}")
        if "samples" in table:
            return dict.fromkeys(columns, table)
        for column in table:
            if column not in columns:
                raise ValueError(f"shape is of {column!r}; {did_you_mean(column, columns)}")
        return table

    @field_validator("skip")
    @classmethod
    def _is_there(cls, table: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        keys, columns = [row.key for row in info.data.get("methods", ())], info.data.get("settings")
        for method, left_out in table.items():
            for name, known in ((method, keys), *((each, columns or ()) for each in left_out)):
                if name not in known:
                    raise ValueError(f"skip has {name!r}; {did_you_mean(name, known)}")
        return table


@dataclass(frozen=True)
class Cell:
    """One training of a grid: a method, a column and a seed."""

    row: GridRow
    column: str
    seed: int
    recipe: Recipe
    method: str  # with the preset of this column, `ctrr/cifar10-sym20`
    by_column: frozenset[str] = frozenset()  # options that the column sets
    by_row: tuple[str, ...] = ()  # options that were tuned for the row, or that it sets

    @property
    def folder(self) -> str:
        """Its run folder, relative to the folder of the grid."""
        return f"{self.row.key}/{slug(self.column)}/seed{self.seed}"

    @property
    def options(self) -> list[str]:
        """Options that differ from the defaults, the method and its preset, such as `loss.q=0.5`.

        Options of the training that the row sets are always included, since other rows may differ.
        """
        own = methods.load(self.method)
        found = []
        for place in ("learner", "loss", "framework", "regularizer", *TRAINING):
            component, options = self.recipe.component(place)
            if place in TRAINING:
                options = {k: v for k, v in options.items() if f"{place}.{k}" in self.by_row}
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
        """The options that papers tune by data set and noise: `λ 50, τ 0.4, lr 0.02`."""
        said = [*methods.load(self.method), *self.by_row]
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
    def fingerprint(self) -> str:
        """Equal for two cells if and only if they are the same training."""
        return hashlib.sha256(self.recipe.key().encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """A readable name of the cell."""
        return f"{self.row.key}, {self.column}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """Its relative cost, in epochs of cross entropy."""
        return self.row.method.cost * self.recipe.settings.epochs


def _same(value: Any, set_by_method: Any) -> bool:
    """Return whether a method sets this value, or a part of it if it is a table."""
    if isinstance(value, dict) and isinstance(set_by_method, dict):
        return all(value.get(key) == inner for key, inner in set_by_method.items())
    return bool(value == set_by_method)


@dataclass(frozen=True)
class Grid:
    """A checked grid."""

    name: str
    description: str
    extends: str
    seeds: int
    rows: tuple[GridRow, ...]
    columns: Mapping[str, tuple[str, ...]]  # overrides by name
    cells: tuple[Cell, ...]
    published: Published | None  # the numbers that others have for these cells
    shapes: Mapping[str, Shape]  # of the data, by column

    @classmethod
    def load(
        cls,
        source: str | Path,
        scale: str = "",
        seeds: int | None = None,
        overrides: Sequence[str] = (),
    ) -> Grid:
        """Read a TOML file, or a shipped grid by name, and resolve the recipe of every cell.

        Args:
            source: a path or a name.
            scale: one of the grid's scales; "" means "full" if the grid has scales.
            seeds: how many; the grid's own number if not given.
            overrides: for all cells, such as "data.root=DIR"; they win.
        """
        name, raw = _at_scale(*read_file(source, "grid"), scale)
        file = _checked(name, raw if seeds is None else {**raw, "seeds": seeds})
        try:
            last = _overrides(list(overrides))
        except ValueError as error:
            raise UsageError(f"on the command line: {error}") from error
        tuned = _tuned(Path(source).parent / file.tuned) if file.tuned else {}
        below = {key: raw[key] for key in TABLES if key in raw}
        if file.extends:
            relative = file.extends.endswith(".toml")
            base = str(Path(source).parent / file.extends) if relative else file.extends
            below["extends"] = base
        return cls(
            name=name,
            description=file.description,
            extends=file.extends,
            seeds=file.seeds,
            rows=file.methods,
            columns=file.settings,
            cells=tuple(_cells(name, file, below, tuned, last)),
            published=(
                Published.load(Path(source).parent / file.published) if file.published else None
            ),
            shapes=file.shape,
        )

    def only(self, names: Sequence[str]) -> list[Cell]:
        """Return the cells of these methods and columns; all if none is named."""
        keys, columns = [row.key for row in self.rows], [slug(name) for name in self.columns]
        wanted = [slug(name) for name in names]
        for given, name in zip(names, wanted, strict=True):
            if name not in (*keys, *columns):
                raise UsageError(
                    f"the grid {self.name!r} has no method or column {given!r}; "
                    f"{did_you_mean(name, (*keys, *columns))}"
                )
        rows = [name for name in wanted if name in keys] or keys
        settings = [name for name in wanted if name in columns] or columns
        found = [c for c in self.cells if c.row.key in rows and slug(c.column) in settings]
        if not found:
            raise UsageError(f"the grid {self.name!r} leaves out {' with '.join(names)}")
        return found


def _at_scale(name: str, raw: Mapping[str, Any], scale: str) -> tuple[str, dict[str, Any]]:
    """Return name and entries of a grid at a scale."""
    scales = raw.get("scales", {})
    if not isinstance(scales, dict) or not all(isinstance(t, dict) for t in scales.values()):
        raise UsageError(f"the grid {name!r}: scales is a table of tables")
    plain = {key: value for key, value in raw.items() if key != "scales"}
    wanted = scale or (FULL if scales else "")
    if wanted in scales:
        return (name if wanted == FULL else f"{name}-{wanted}"), {**plain, **scales[wanted]}
    if wanted in ("", FULL):
        return name, plain
    known = list(dict.fromkeys([FULL, *scales]))
    raise UsageError(f"the grid {name!r} has no scale {wanted!r}; {did_you_mean(wanted, known)}")


def _checked(name: str, raw: Mapping[str, Any]) -> GridFile:
    """Return the keys of a grid besides the sections of a recipe, checked."""
    try:
        return GridFile(**{key: value for key, value in raw.items() if key not in TABLES})
    except ValidationError as error:
        raise UsageError(_complaint(name, raw, error)) from error


def _tuned(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the overrides of a file by label or method. Several grids may share the file."""
    _, table = read_file(path, "grid")
    found = {}
    for name, entry in table.items():
        try:
            found[name] = _overrides(entry)
        except ValueError as error:
            raise UsageError(f"{path}, {name}: {error}") from error
    return found


def _family(row: GridRow) -> str:
    """Return the name of a row's method, without a preset."""
    return row.name.partition("/")[0]


def _complaint(name: str, raw: Mapping[str, Any], error: ValidationError) -> str:
    """Return one line about the first mistake in a grid: where, what is wrong, what is valid."""
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    where, place, kind = f"the grid {name!r}", first["loc"], first["type"]
    if place in NEEDED and kind != "value_error":
        return f"{where} needs {NEEDED[place]}"
    valid: tuple[str, ...] = (*GridFile.model_fields, "scales", *TABLES)
    if place[0] == "methods" and len(place) > 1:
        entry = raw["methods"][place[1]]
        shown = entry.get("name") if isinstance(entry, dict) else entry
        where, place, valid = f"{where}, method {shown!r}", place[2:], (*GridRow.model_fields,)
    elif place[0] == "settings" and len(place) > 1:
        where, place = f"{where}, column {place[1]!r}", place[2:]
    if place[:1] == ("shape",) and kind in ("missing", "unexpected_keyword_argument"):
        return f"{where}: shape has samples, side, classes, perhaps channels, and only these"
    if kind == "extra_forbidden":
        return f"{where} has no {place[-1]!r}; {did_you_mean(str(place[-1]), valid)}"
    dotted = ".".join(map(str, place))
    if kind == "value_error":
        text = str(first["ctx"]["error"])
        return f"{where}: {text}" if dotted != "set" else f"{where}, set: {text}"
    return f"{where}: {dotted} is {first['input']!r}; {first['msg'][:1].lower()}{first['msg'][1:]}"


def _cells(
    name: str,
    file: GridFile,
    below: Mapping[str, Any],
    tuned: Mapping[str, tuple[str, ...]],
    last: Sequence[str],
) -> Iterator[Cell]:
    """Yield all cells; `below` holds options before the method, `last` the overrides that win."""
    for row in file.methods:
        # What was tuned for a method serves its other rows, too.
        found = tuned.get(row.key, tuned.get(_family(row), ()))
        by_row = tuple(map(_key, (*found, *row.set)))
        for column, own in file.settings.items():
            if column in file.skip.get(row.key, ()):
                continue
            method = row.for_column(file.presets, column)
            overrides = (*file.set, *found, *own, *row.set, *last)
            by_column = frozenset(map(_key, (*own, *last)))
            for seed in range(file.first_seed, file.first_seed + file.seeds):
                said = [each.replace("{seed}", str(seed)) for each in overrides]
                # One thread a cell: as many cells as there are cores run side by side.
                said += ["train.threads=1", f"train.seed={seed}"]
                try:
                    recipe = Recipe.from_dict(below, f"method={method}", *said, name=name)
                except UsageError as error:
                    raise UsageError(
                        f"the grid {name!r}, method {row.key!r}, {column!r}: {error}"
                    ) from error
                yield Cell(row, column, seed, recipe, method, by_column, by_row)
