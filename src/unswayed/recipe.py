"""A recipe: sections, each the name of a component and options of its constructor.

Recipes are TOML files. `extends` names a recipe below, `method` a method, and the file's own
sections come after both. Overrides such as `noise.rate=0.4` come last. All of these become one
list of assignments, which are made in order. The last method wins.
"""

from __future__ import annotations

import copy
import json
import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from unswayed.data import CORRECTED, DATASETS
from unswayed.errors import UsageError
from unswayed.frameworks import FRAMEWORKS
from unswayed.learners import LEARNERS
from unswayed.losses import LOSSES
from unswayed.methods import load as load_method
from unswayed.models import MODELS
from unswayed.noise import NOISES
from unswayed.optimizers import OPTIMIZERS
from unswayed.registry import Component, Registry, did_you_mean
from unswayed.regularizers import REGULARIZERS
from unswayed.schedules import SCHEDULES
from unswayed.training.settings import Settings
from unswayed.views import VIEWS

Options = dict[str, Any]
Assignment = tuple[str, Any]  # an option, such as `views.weak.flip`, or `method`; and its value

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
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
TRAIN = Component("section", "train", Settings, "")
SECTIONS = (*REGISTRIES, "train")
TABLES = tuple(dict.fromkeys(section.partition(".")[0] for section in SECTIONS))
"""The top-level tables of a file: `views` holds `views.weak` and `views.strong`."""

DEFAULT_NAMES = {
    "noise": "none",
    "views.weak": "resized_crop",
    "views.strong": "strong",
    "model": "small",
    "learner": "regularized",
    "loss": "ce",
    "framework": "simsiam",
    "regularizer": "ctrr",
    "optimizer": "sgd",
    "schedule": "cosine",
}
MOVED = {
    "train.optimizer": "optimizer.name",
    **{f"train.{option}": f"optimizer.{option}" for option in OPTIMIZERS["muon"].options},
    "train.schedule": "schedule.name",
    **{f"train.{option}": f"schedule.{option}" for option in ("milestones", "gamma", "peak")},
    "train.ends": "schedule.start and schedule.end",
    **dict.fromkeys(("noise.exact", "noise.per_class"), "noise.draw"),
    **{f"views.{which}.crop": f"views.{which}.name" for which in ("weak", "strong")},
}
"""Options of earlier versions, and their new places."""


@dataclass(frozen=True)
class Recipe:
    """A checked recipe with every option filled in.

    `sections` holds the options by section, such as "loss" or "views.weak". `method` is the method
    as it was named, such as "elr/cifar100", or "".
    """

    name: str
    sections: Mapping[str, Options]
    description: str = ""
    method: str = ""  # as it was written, such as "elr/cifar100"

    @property
    def label(self) -> str:
        """A short name: the method, or its parts, such as `gce + ctrr (byol)`."""
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
        """Read a TOML file, or a shipped recipe by name, and apply overrides.

        >>> from unswayed import Recipe
        >>> recipe = Recipe.load("digits", "method=gce", "train.epochs=20")
        >>> recipe.label, recipe.settings.epochs, recipe.sections["loss"]["q"]
        ('gce', 20, 0.7)

        Args:
            source: a path, or a name that `unswayed list recipes` prints.
            *overrides: options such as "noise.rate=0.4".
        """
        name, raw = read(source)
        return cls._made(raw, overrides, name, Path(source).parent)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], *overrides: str, name: str = "recipe") -> Recipe:
        """Make a recipe from tables, nested as in a TOML file or flat as in `sections`."""
        return cls._made(raw, overrides, name, Path())

    @classmethod
    def _made(
        cls, raw: Mapping[str, Any], overrides: Collection[str], name: str, folder: Path
    ) -> Recipe:
        own = [_parse(word) for word in overrides]
        method, sections = _fold([*_assignments(raw, name, folder), *_names_first(own)])
        _check_wanted(sections, [key for key, _ in own])
        return cls(name, _resolve(sections), str(raw.get("description", "")), method)

    def with_overrides(self, *overrides: str) -> Recipe:
        """Return the recipe with these overrides applied."""
        about = {"description": self.description}
        made = self.from_dict({**self.sections, **about}, *overrides, name=self.name)
        return replace(made, method=made.method or self.method)

    def component(self, section: str) -> tuple[Component[Any], Options]:
        """Return the component of a section such as "loss" or "views.weak", and its options."""
        options = dict(self.sections[section])
        return TRAIN if section == "train" else REGISTRIES[section][options.pop("name")], options

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
        said = {"description": self.description, "method": self.method}
        lines = [f"{key} = {_toml(value)}" for key, value in said.items() if value]
        for section in SECTIONS:
            options = {k: v for k, v in self.sections[section].items() if v is not None}
            lines += ["", f"[{section}]", *(f"{k} = {_toml(v)}" for k, v in options.items())]
        return "\n".join(lines).lstrip("\n") + "\n"

    def with_options(self, section: str, **options: Any) -> Recipe:
        """Return the recipe with all options of a section replaced."""
        return replace(self, sections={**self.sections, section: options})

    def key(self, ignoring: Collection[str] = ()) -> str:
        """Return a text that is equal for two recipes if and only if they are the same training.

        An option without a value counts as one that is not there, as in a file.

        Args:
            ignoring: options that do not count, such as "train.seed" and "train.threads".
        """
        options = _flat(self.sections).items()
        counted = {k: v for k, v in options if k not in ignoring and v is not None}
        return json.dumps(counted, sort_keys=True)

    def difference(self, other: Recipe) -> list[str]:
        """Return the options in which two recipes differ, as `loss.q`."""
        mine, theirs = _flat(self.sections), _flat(other.sections)
        return sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))


def shipped(kind: Literal["recipe", "grid"] = "recipe") -> dict[str, str]:
    """Return names and descriptions of the recipes, or grids, in the package."""
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
    """Return name and content of a TOML file, or of a shipped recipe or grid."""
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
    except RecursionError:
        raise UsageError(f"the {kind} {source} is nested too deeply to be read") from None
    except ValueError as error:  # numbers of thousands of digits among them
        raise UsageError(f"the {kind} {source} is not valid TOML: {error}") from error


def _assignments(
    raw: Mapping[str, Any], name: str, folder: Path, seen: tuple[str, ...] = ()
) -> list[Assignment]:
    """Return the assignments of a recipe, after those of the recipe that it extends.

    A path in `extends` is relative to `folder`.
    """
    base, found = raw.get("extends"), []
    if base is not None:
        if not isinstance(base, str):
            raise UsageError(f"the recipe {name!r} extends {base!r}, which is no name")
        base = os.path.normpath(folder / base) if base.endswith(".toml") else base
        if base in seen:
            raise UsageError(f"the recipe {name!r} extends itself: {' -> '.join((*seen, base))}")
        found = _assignments(read(base)[1], base, Path(base).parent, (*seen, base))
    own = [("method", raw["method"])] if raw.get("method") else []
    tables = {k: v for k, v in raw.items() if k not in ("extends", "description", "method")}
    for section, options in _tables(tables):
        own += [(f"{section}.{option}", value) for option, value in options.items()]
    return [*found, *_names_first(own)]


def _tables(raw: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Options]]:
    """Yield sections and their options. The table `views` holds two sections."""
    for key, table in raw.items():
        section = f"{prefix}{key}"
        known = section in SECTIONS
        if not known and not any(each.startswith(f"{section}.") for each in SECTIONS):
            raise UsageError(_no_section(section))
        if not isinstance(table, dict):
            raise UsageError(f"the section {section!r} of a recipe is a table, not {table!r}")
        if known:
            yield section, table
        else:
            yield from _tables(table, f"{section}.")


def _no_section(key: str) -> str:
    """Return the error message for an unknown section."""
    first, _, rest = key.partition(".")
    inside = [each.removeprefix(f"{first}.") for each in SECTIONS if each.startswith(f"{first}.")]
    if inside and not rest:
        return f"write {first}.{inside[0]}.key=value"
    if inside:
        return f"{first} has no {rest.partition('.')[0]!r}; {did_you_mean(rest, inside)}"
    return f"a recipe has no section {first!r}; {did_you_mean(first, TABLES)}"


def _names_first(assignments: Iterable[Assignment]) -> list[Assignment]:
    """Sort assignments: the method first, then names of components, then options."""
    return sorted(assignments, key=lambda each: (each[0] != "method", each[0][-5:] != ".name"))


def _parse(word: str) -> Assignment:
    key, equals, text = word.partition("=")
    if not equals:
        raise UsageError(f"{word!r} is not an override; write section.key=value")
    if key == "method":
        return key, text.strip("\"'")
    _split(key)
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word: the shell has eaten the quotes
    return key, value


def _split(key: str) -> tuple[str, list[str]]:
    """Return section and option; `regularizer.weight.start` is an option inside an option."""
    for section in SECTIONS:
        if key == section or key.startswith(f"{section}."):
            option = key[len(section) + 1 :].split(".")
            if not all(option):
                raise UsageError(f"{key!r} is not an option; write {section}.key=value")
            return section, option
    raise UsageError(f"{key!r}: {_no_section(key)}")


def _fold(assignments: list[Assignment]) -> tuple[str, dict[str, Options]]:
    """Apply all assignments in order, and return the last method and the options that were set.

    A method drops the options of learner and loss that were set before it, since one name means
    different things in different losses. It keeps those of framework and regularizer, which depend
    on the data as much as on the method.
    """
    sections: dict[str, Options] = {section: {} for section in SECTIONS}
    last = max((n for n, (key, _) in enumerate(assignments) if key == "method"), default=-1)
    for number, (key, value) in enumerate(assignments):
        if key != "method":
            _set(sections, key, value)
        elif number == last:
            sections["learner"], sections["loss"] = {}, {}
            for part in _names_first(load_method(str(value)).items()):
                _set(sections, *part)
    return str(assignments[last][1]) if last >= 0 else "", sections


def _set(sections: dict[str, Options], key: str, value: Any) -> None:
    """Set an option. Naming another component drops the options that it does not have."""
    if key == "data.labels" and str(value).endswith(".csv"):
        key = f"data.{CORRECTED}"  # without `.csv`, some data sets choose published labels by it
    section, (*outer, last) = _split(key)
    table = sections[section]
    named = not outer and last == "name" and section in REGISTRIES
    if named and value != _name_in(sections, section):
        known = REGISTRIES[section][str(value)].options
        for option in [each for each in table if each not in known]:
            del table[option]
    for part in outer:
        inner = table.get(part)
        table[part] = dict(inner) if isinstance(inner, dict) else {}
        table = table[part]
    table[last] = copy.deepcopy(value)


def _name_in(sections: Mapping[str, Options], section: str) -> str:
    return str(sections[section].get("name", DEFAULT_NAMES.get(section)))


def _check_wanted(sections: Mapping[str, Options], keys: list[str]) -> None:
    """Refuse overrides of a framework or regularizer that the training does not use."""
    learner, contrast = LEARNERS[_name_in(sections, "learner")], ("framework", "regularizer")
    none = next((part for part in contrast if _name_in(sections, part) == "none"), None)
    for key in keys:
        section, _, option = key.partition(".")
        if section in contrast and section not in learner.facts:
            raise UsageError(f"{key}: the learner {learner.name!r} has no {section}; leave it out")
        if section in contrast and none and option != "name":
            raise UsageError(f"{key}: there is no contrast, since {none}.name=none; leave it out")


def _resolve(sections: Mapping[str, Options]) -> dict[str, Options]:
    """Return every option of every section, checked."""
    if "name" not in sections["data"]:
        raise UsageError(
            "this recipe names no data; add for example data.name=digits, or data.name=npz "
            "data.path=FILE (see: unswayed list data)"
        )
    resolved = {section: _resolved(section, sections) for section in REGISTRIES}
    if resolved["data"].get(CORRECTED) and resolved["noise"]["name"] != "none":
        raise UsageError(
            f"data.{CORRECTED}: the labels of the file are used as they are; set noise.name=none"
        )
    learner = LEARNERS[resolved["learner"]["name"]]
    if "loss" not in learner.facts and resolved["loss"]["name"] != DEFAULT_NAMES["loss"]:
        raise UsageError(
            f"the learner {learner.name!r} has a loss of its own; leave out "
            f"loss.name={resolved['loss']['name']}"
        )
    without = "framework" not in learner.facts
    if without or "none" in (resolved["framework"]["name"], resolved["regularizer"]["name"]):
        resolved["framework"], resolved["regularizer"] = {"name": "none"}, {"name": "none"}
    _check_moved("train", sections["train"], TRAIN)
    resolved["train"] = TRAIN.resolve(sections["train"])
    TRAIN.build(resolved["train"])  # options that contradict each other are noticed now
    return resolved


def _resolved(section: str, sections: Mapping[str, Options]) -> Options:
    """Return every option of a component."""
    name = _name_in(sections, section)
    options = {key: value for key, value in sections[section].items() if key != "name"}
    try:
        component = REGISTRIES[section][name]
        _check_moved(section, options, component)
        found = component.resolve(options)
        if section in ("optimizer", "schedule"):  # these need nothing else to be built
            component.build(found)
    except UsageError as error:
        raise UsageError(f"[{section}] {error}") from error
    return {"name": name, **found}


def _check_moved(section: str, options: Options, component: Component[Any]) -> None:
    for option in options:
        new = MOVED.get(f"{section}.{option}")
        if new is not None and option not in component.options:
            raise UsageError(f"{section} has no option {option!r}; it moved to {new}")


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
