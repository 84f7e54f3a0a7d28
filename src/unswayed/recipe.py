"""A recipe: nine sections, each a component's name and its constructor's keywords.

Recipes are TOML files. `extends` names another recipe whose values hold where this one is silent;
`method` names a method, which sets learner, loss, framework and regularizer. Overrides such as
`noise.rate=0.4` come last. Names and options are checked when a recipe is loaded; what only the
parts together or the data can tell, when they are built, before anything is written.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from unswayed.data import DATASETS
from unswayed.errors import UsageError
from unswayed.frameworks import FRAMEWORKS
from unswayed.learners import LEARNERS
from unswayed.losses import LOSSES
from unswayed.methods import load as load_method
from unswayed.models import MODELS
from unswayed.noise import NOISES
from unswayed.registry import Component, Registry, did_you_mean
from unswayed.regularizers import REGULARIZERS
from unswayed.training.settings import Settings
from unswayed.views import VIEWS

Options = dict[str, Any]

REGISTRIES: Mapping[str, Registry[Any]] = {
    "data": DATASETS,
    "noise": NOISES,
    "views.weak": VIEWS,
    "views.strong": VIEWS,
    "model": MODELS,
    "learner": LEARNERS,
    "loss": LOSSES,
    "framework": FRAMEWORKS,
    "regularizer": REGULARIZERS,
}
TRAIN = Component("section", "train", Settings, "")
SECTIONS = (
    "data",
    "noise",
    "views",
    "model",
    "learner",
    "loss",
    "framework",
    "regularizer",
    "train",
)
DEFAULT_NAMES = {
    "noise": "none",
    "views.weak": "weak",
    "views.strong": "strong",
    "model": "small",
    "learner": "regularized",
    "loss": "ce",
    "framework": "simsiam",
    "regularizer": "ctrr",
}


@dataclass(frozen=True)
class Recipe:
    """A checked recipe with every option filled in."""

    name: str
    sections: Mapping[str, Options]
    description: str = ""
    method: str = ""  # as it was written, such as "elr/cifar100"

    @property
    def label(self) -> str:
        """What is done in a few words: the method, or its parts, such as `gce + ctrr (byol)`."""
        if self.method:
            return self.method
        learner, words = self.sections["learner"], str(self.sections["loss"]["name"])
        if learner["name"] != "regularized":
            words = learner["name"] + (f" ({words})" if words != "ce" else "")
        if learner.get("correction"):
            words += " + label correction"
        regularizer, framework = self.sections["regularizer"], self.sections["framework"]
        if regularizer["name"] != "none":
            words += f" + {regularizer['name']} ({framework['name']})"
        return words

    @classmethod
    def load(cls, source: str | Path = "digits", *overrides: str) -> Recipe:
        """Read a TOML file, or a shipped recipe by name, and apply `section.key=value` words."""
        name, raw = read(source)
        another = any(word.startswith("method=") for word in overrides)
        raw = _extended(raw, name, Path(source).parent, methodless=another)
        return cls.from_dict(raw, *overrides, name=name)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], *overrides: str, name: str = "recipe") -> Recipe:
        """Make a recipe of nested tables, as a TOML file would hold them."""
        values = [_parse(word) for word in overrides]
        methods = [value for key, value in values if key == "method"]
        raw = _extended(raw, name, Path(), methodless=bool(methods))
        if methods:
            _use_method(raw, methods[-1])
        values = _names_first([pair for pair in values if pair[0] != "method"])
        for key, value in values:
            _set(raw, key, value)
        _check_wanted(raw, [key for key, _ in values])
        about = raw.pop("description", "")
        for section in raw:
            if section not in SECTIONS:
                raise UsageError(
                    f"a recipe has no section {section!r}; {did_you_mean(section, SECTIONS)}"
                )
        return cls(name, _resolve(raw), about)

    def component(self, section: str) -> tuple[Component[Any], Options]:
        """Return the component of a section such as "loss" or "views.weak", and its options."""
        options = dict(_table(self.sections, section))
        return REGISTRIES[section][options.pop("name")], options

    def build(self, section: str, facts: Mapping[str, Any] | None = None) -> Any:
        """Build the component of a section."""
        component, options = self.component(section)
        return component.build(options, facts)

    @property
    def settings(self) -> Settings:
        """The `train` section."""
        settings: Settings = TRAIN.build(self.sections["train"])
        return settings

    def to_toml(self) -> str:
        """Return the recipe as a file that loads to the same recipe."""
        lines = [f"description = {_toml(self.description)}"] if self.description else []
        for section in SECTIONS:
            table = self.sections[section]
            nested = {k: v for k, v in table.items() if section == "views"}
            for title, options in nested.items() or [("", table)]:
                lines += ["", f"[{section}{'.' * bool(title)}{title}]"]
                lines += [f"{k} = {_toml(v)}" for k, v in options.items() if v is not None]
        return "\n".join(lines).lstrip("\n") + "\n"

    def with_options(self, place: str, **options: Any) -> Recipe:
        """Return the recipe with another table in a section."""
        return replace(self, sections={**self.sections, place: options})

    def key(self, ignoring: Collection[str] = ()) -> str:
        """Return a text that two recipes share if and only if they are the same training.

        Args:
            ignoring: options that do not count, such as "train.seed" and "train.threads".
        """
        counted = {k: v for k, v in _flat(self.sections).items() if k not in ignoring}
        return json.dumps(counted, sort_keys=True)

    def difference(self, other: Recipe) -> list[str]:
        """Return the options in which two recipes differ, as `loss.q`."""
        mine, theirs = _flat(self.sections), _flat(other.sections)
        return sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))


def shipped(kind: Literal["recipe", "grid"] = "recipe") -> dict[str, str]:
    """Return name and description of the recipes in the package, or of the grids of `bench`."""
    found = {}
    top = resources.files("unswayed.recipes")
    folders = [("", top)] + [(f"{f.name}/", f) for f in top.iterdir() if f.is_dir()]
    for prefix, folder in folders:
        for file in folder.iterdir():
            if file.name.endswith(".toml"):
                text = tomllib.loads(file.read_text(encoding="utf-8"))
                if ("methods" in text) == (kind == "grid"):
                    name = f"{prefix}{file.name.removesuffix('.toml')}"
                    found[name] = str(text.get("description", ""))
    return dict(sorted(found.items()))


def read(source: str | Path, kind: Literal["recipe", "grid"] = "recipe") -> tuple[str, Options]:
    """Return name and tables of a TOML file, or of one that ships with the package."""
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the {kind} {path} cannot be read: {error}") from error
    elif str(source) in (names := shipped(kind)):
        file = resources.files("unswayed.recipes") / f"{source}.toml"
        text = file.read_text(encoding="utf-8")
    else:
        hint = did_you_mean(str(source), names)
        raise UsageError(f"no {kind} called {str(source)!r}, and no such file; {hint}")
    try:
        return path.name.removesuffix(".toml"), tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the {kind} {source} is not valid TOML: {error}") from error


def _extended(
    raw: Mapping[str, Any],
    name: str,
    folder: Path,
    seen: tuple[str, ...] = (),
    *,
    methodless: bool = False,
) -> Options:
    """Return the recipe laid over the one it extends; a file is looked for in `folder`.

    There is one method, the last that is named: of those below, nothing is left. `methodless` says
    that another one comes.
    """
    own = copy.deepcopy(dict(raw))
    base, method = own.pop("extends", None), own.pop("method", None)
    if base is None and method is None:
        return own
    below = _base(base, name, folder, seen, methodless=methodless or method is not None)
    if method is not None and not methodless:
        _use_method(below, method)
    _lay_over(below, own)
    return below


def _base(
    base: Any, name: str, folder: Path, seen: tuple[str, ...], *, methodless: bool
) -> Options:
    """Return the recipe that another one extends."""
    if base is None:
        return {}
    if not isinstance(base, str):
        raise UsageError(f"the recipe {name!r} extends {base!r}, which is no name")
    if base.endswith(".toml"):
        base = str(folder / base)
    if base in seen:
        raise UsageError(f"the recipe {name!r} extends itself: {' -> '.join((*seen, base))}")
    text = read(base)[1]
    below = _extended(text, base, Path(base).parent, (*seen, base), methodless=methodless)
    below.pop("description", None)
    return below


def _use_method(raw: Options, method: Any) -> None:
    """Set what a method such as `elr` or `elr/cifar100` consists of.

    Options of a framework and a regularizer stay: they belong to the data as much as to the
    method. Those of learner and loss do not: the same word means another thing in another loss.
    """
    for section in ("learner", "loss"):
        raw.pop(section, None)
    for key, value in _names_first(list(load_method(str(method)).items())):
        _set(raw, key, value)


def _lay_over(below: Options, own: Options) -> None:
    values: list[tuple[str, Any]] = []
    for section, table in own.items():
        if section == "description":
            below[section] = table
            continue
        tables = (
            {f"{section}.{k}": v for k, v in table.items()}
            if section == "views" and isinstance(table, dict)
            else {section: table}
        )
        for place, options in tables.items():
            values += [(f"{place}.{key}", v) for key, v in _is_table(place, options).items()]
    for key, value in _names_first(values):
        _set(below, key, value)


def _names_first(values: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Name components before setting options, which must be those of the component named."""
    return sorted(values, key=lambda pair: not pair[0].endswith(".name"))


def _parse(word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    if not equals:
        raise UsageError(f"{word!r} is not an override; write section.key=value")
    if key == "method":
        return key, text.strip("\"'")
    parts = key.split(".")
    if parts[0] not in SECTIONS:
        raise UsageError(f"{key!r}: no section {parts[0]!r}; {did_you_mean(parts[0], SECTIONS)}")
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"{word!r} is not an override; write {parts[0]}.key=value")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word: the shell has eaten the quotes
    return key, value


def _set(raw: Options, key: str, value: Any) -> None:
    """Set an option; a new component keeps only those older options that it has too."""
    section, *rest = key.split(".")
    place = section
    if section == "views" and len(rest) > 1:
        place = f"views.{rest.pop(0)}"
    table = raw
    for part in place.split("."):
        table = _is_table(part, table.setdefault(part, {}))
    if rest == ["name"] and place in REGISTRIES and value != _name_in(raw, place):
        known = REGISTRIES[place][str(value)].options
        for option in [k for k in table if k not in known]:
            del table[option]
    for part in rest[:-1]:
        inner = table.get(part)
        table[part] = dict(inner) if isinstance(inner, dict) else {}
        table = table[part]
    table[rest[-1]] = value


def _name_in(raw: Options, place: str) -> str:
    return str(_table(raw, place).get("name", DEFAULT_NAMES.get(place)))


def _table(sections: Mapping[str, Any], place: str) -> Options:
    table: Any = sections
    for part in place.split("."):
        table = _is_table(part, table.get(part, {}))
    return dict(table)


def _is_table(place: str, value: Any) -> Options:
    if not isinstance(value, dict):
        raise UsageError(f"the section {place!r} of a recipe is a table, not {value!r}")
    return value


def _check_wanted(raw: Options, keys: list[str]) -> None:
    """Refuse words for a framework or regularizer where the learner has no use for them."""
    learner = LEARNERS[_name_in(raw, "learner")]
    for key in keys:
        section = key.partition(".")[0]
        if section in ("framework", "regularizer") and section not in learner.facts:
            raise UsageError(f"{key}: the learner {learner.name!r} has no {section}; leave it out")


def _resolve(raw: Options) -> dict[str, Options]:
    for view in _is_table("views", raw.get("views", {})):
        if view not in ("weak", "strong"):
            raise UsageError(f"views has no {view!r}; {did_you_mean(view, ('weak', 'strong'))}")
    resolved: dict[str, Options] = {}
    for place, registry in REGISTRIES.items():
        options = _table(raw, place)
        if place == "data" and "name" not in options:
            raise UsageError(
                "this recipe names no data; add for example data.name=digits, or data.name=npz "
                "data.path=FILE (see: unswayed list data)"
            )
        name = str(options.pop("name", DEFAULT_NAMES.get(place)))
        try:
            table = {"name": name, **registry[name].resolve(options)}
        except UsageError as error:
            raise UsageError(f"[{place}] {error}") from error
        section, _, view = place.partition(".")
        if view:
            resolved.setdefault(section, {})[view] = table
        else:
            resolved[section] = table
    learner = LEARNERS[resolved["learner"]["name"]]
    if "loss" not in learner.facts and resolved["loss"]["name"] != DEFAULT_NAMES["loss"]:
        raise UsageError(
            f"the learner {learner.name!r} has a loss of its own; leave out "
            f"loss.name={resolved['loss']['name']}"
        )
    without = "framework" not in learner.facts
    if without or "none" in (resolved["framework"]["name"], resolved["regularizer"]["name"]):
        resolved["framework"], resolved["regularizer"] = {"name": "none"}, {"name": "none"}
    resolved["train"] = TRAIN.resolve(_table(raw, "train"))
    TRAIN.build(resolved["train"])  # options that contradict each other are noticed now
    return resolved


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Options:
    flat: Options = {}
    for key, value in table.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat
