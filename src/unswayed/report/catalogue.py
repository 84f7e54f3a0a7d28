"""A list of all that a recipe can name, kept in a file so that printing it needs no PyTorch.

`python -m unswayed.report.catalogue` writes catalogue.json; `make docs` does so too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unswayed.report.options import default_words

if TYPE_CHECKING:
    from unswayed.registry import Component

PACKAGE = Path(__file__).parents[1]
FILE = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True)
class Option:
    """An option of a component, as text."""

    name: str
    default: str
    help: str


@dataclass(frozen=True)
class Entry:
    """A component, a method, a recipe or a grid."""

    name: str  # empty for a section that names no component
    about: str
    paper: str = ""
    presets: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(frozen=True)
class Kind:
    """Entries of one kind, and the sections of a recipe that can name them."""

    name: str
    places: list[str]
    entries: list[Entry]


def catalogue() -> list[Kind]:
    """Return the list in the file, or collect it if the file may be out of date."""
    # Whoever registers a component has loaded the registry. A file that was added or removed since
    # the catalogue was written may hold a component too.
    known = json.loads(FILE.read_text(encoding="utf-8"))["files"]
    if "unswayed.registry" in sys.modules or _files(known) != known:
        return collected()
    return written()


def written() -> list[Kind]:
    """Return the list in the file."""
    kinds = json.loads(FILE.read_text(encoding="utf-8"))["kinds"]
    return [
        Kind(**{**kind, "entries": [_entry(**each) for each in kind["entries"]]}) for kind in kinds
    ]


def _entry(options: Iterable[dict[str, str]], **rest: Any) -> Entry:
    return Entry(**rest, options=[Option(**option) for option in options])


def collected() -> list[Kind]:
    """Import every component, and return the list."""
    from unswayed.recipe import REGISTRIES, TRAIN

    places: dict[int, list[str]] = {}
    for place, registry in REGISTRIES.items():
        places.setdefault(id(registry), []).append(place)
    kinds = [_shipped("recipe"), _shipped("grid"), _methods()]
    for those in places.values():
        registry = REGISTRIES[those[0]]
        name = those[0] if len(those) == 1 else those[0].partition(".")[0]
        entries = [_described(registry[each], each) for each in registry.names()]
        kinds.append(Kind(name, those, entries))
    return [*kinds, Kind("train", ["train"], [_described(TRAIN, "")])]


def _shipped(kind: Literal["recipe", "grid"]) -> Kind:
    from unswayed.recipe import shipped

    found = [Entry(name, about) for name, about in shipped(kind).items()]
    return Kind(f"{kind}s", [f"{kind}s"], found)


def _methods() -> Kind:
    from unswayed import methods

    entries = []
    for name in methods.names():
        method = methods.get(name)
        origin = ", ".join(filter(None, (method.paper, method.equation)))
        presets = [f"{name}/{preset}" for preset in method.presets]
        entries.append(Entry(name, method.title, origin, presets))
    return Kind("methods", ["methods"], entries)


def _described(component: Component[Any], name: str) -> Entry:
    options = [
        Option(option, default_words(parameter), component.help.get(option, "").rstrip("."))
        for option, parameter in component.options.items()
    ]
    return Entry(name, component.summary.rstrip("."), component.paper, options=options)


def _folders() -> list[str]:
    """Return the folders of the package that components, methods and recipes come from."""
    from unswayed.recipe import REGISTRIES

    found = {"methods", "recipes"}
    for registry in REGISTRIES.values():
        for name in registry.names():
            top, _, rest = registry[name].make.__module__.partition(".")
            if top == "unswayed":
                found.add(rest.partition(".")[0])
    return sorted(found)


def _files(folders: Iterable[str]) -> dict[str, list[str]]:
    """Return the modules and TOML files in these folders of the package."""
    return {
        folder: sorted(
            path.relative_to(PACKAGE / folder).as_posix()
            for path in (PACKAGE / folder).rglob("*")
            if path.suffix in (".py", ".toml")
        )
        for folder in folders
    }


def text() -> str:
    """Return the text of the file."""
    found = {"files": _files(_folders()), "kinds": [asdict(kind) for kind in collected()]}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
