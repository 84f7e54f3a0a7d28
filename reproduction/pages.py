"""Write a page for each method, from what the code and the measurements say.

`python -m reproduction.pages docs/methods results/digits-methods.json` writes docs/methods.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from reproduction import TEMPLATES
from unswayed import methods
from unswayed.bench.tables import Results, percent, spread
from unswayed.files import write_text
from unswayed.methods import Method
from unswayed.recipe import Recipe
from unswayed.registry import Component
from unswayed.report.options import default_words
from unswayed.report.templates import fill

KINDS = ("learner", "loss", "framework", "regularizer")

REFERENCE = "ce"
"""The method whose time is 1."""

MARK = "<!-- Made by `make docs`;"
"""The first words of a generated page. Only such pages are replaced or removed."""

NUMBERS = {
    "last": "test accuracy, last epoch",
    "selected": "test accuracy, selected on the noisy hold-out",
    "memorised": "wrong labels memorised",
}


def pages(results: Results | None = None) -> dict[str, str]:
    """Return all pages by file name. Without results they have no measured numbers."""
    found = {"README.md": index(results)}
    return found | {f"{name}.md": page(methods.get(name), results) for name in methods.names()}


def page(method: Method, results: Results | None = None) -> str:
    """Return the page of a method."""
    recipe = Recipe.load("digits", f"method={method.name}")
    origin = ", ".join(filter(None, (method.paper, method.equation)))
    return fill(
        "method.md.j2",
        TEMPLATES,
        mark=MARK,
        method=method,
        origin=f"{origin}:" if origin else "What is minimised:",
        parts=[_part(kind, recipe, method) for kind in _kinds(recipe, method)],
        presets=_presets(method),
        cost=_cost(method, results),
        results=results,
        numbers=_numbers(method, results),
        options=_measured_with(method, results),
    )


def index(results: Results | None = None) -> str:
    """Return the list of all methods."""
    columns = [column["name"] for column in results["columns"]] if results else []
    rows = [["method", "name", "paper", "cost", *columns]]
    for name in methods.names():
        method = methods.get(name)
        numbers = [_spread(results, "last", name, column) for column in columns]
        link = f"[{method.title}]({name}.md)"
        rows.append([link, f"`{name}`", method.paper or "–", f"{method.cost:.1f}", *numbers])
    return fill("methods.md.j2", TEMPLATES, mark=MARK, results=results, methods=rows)


def _kinds(recipe: Recipe, method: Method) -> Iterator[str]:
    """Yield the sections of a recipe that matter for a method."""
    learner, _ = recipe.component("learner")
    for kind in KINDS:
        changed = any(key.startswith(f"{kind}.") for key in method.options)
        if changed or (kind == "loss" and "loss" in learner.facts):
            yield kind


def _part(kind: str, recipe: Recipe, method: Method) -> dict[str, Any]:
    """Return name, source, summary and options of a component that the method consists of."""
    component, _ = recipe.component(kind)
    rows = [["option", "default", "here", "meaning"]]
    rows += [row for name in component.options for row in _option(component, kind, name, method)]
    if not any(row[2] for row in rows[1:]):
        rows = [[row[0], row[1], row[3]] for row in rows]
    return {
        "kind": kind,
        "name": component.name,
        "source": f"../../src/{component.make.__module__.replace('.', '/')}.py",
        "summary": _plain(component.summary),
        "options": rows if component.options else [],
    }


def _option(
    component: Component[Any], place: str, name: str, method: Method
) -> Iterator[list[str]]:
    """Yield the row of an option, and rows of the options inside it if it is a table."""
    own = method.options.get(f"{place}.{name}")
    here = "" if own is None else f"`{_value(own)}`"
    default = f"`{default_words(component.options[name])}`"
    yield [f"`{place}.{name}`", default, here, _plain(component.help.get(name, ""))]
    kinds = [each for each in get_args(component.annotations[name]) if isinstance(each, type)]
    tables = [kind for kind in kinds if is_dataclass(kind)]
    if len(tables) == 1:  # several are schedules, which docs/recipes.md explains
        inner = _Table("option", name, tables[0], "")
        for each in inner.options:
            yield from _option(inner, f"{place}.{name}", each, method)


class _Table(Component[Any]):
    """A table of options, treated as a component."""

    @cached_property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """All fields."""
        return inspect.signature(self.make).parameters


def _plain(text: str) -> str:
    """Escape what Markdown would interpret."""
    return text.rstrip(".").replace("<", "\\<").replace("[", "\\[")


def _presets(method: Method) -> list[list[str]]:
    rows = []
    for name, options in method.presets.items():
        shown = ", ".join(f"`{key} = {_value(value)}`" for key, value in options.items())
        rows.append([f"`{method.name}/{name}`", shown])
    return [["preset", "sets"], *rows] if rows else []


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)


def _cost(method: Method, results: Results | None) -> str:
    networks = "one network" if method.networks == 1 else f"{method.networks} networks"
    text = (
        f"A step makes {_times(method.forwards, 'forward')} and "
        f"{_times(method.backwards, 'backward')} through {networks}. If a backward pass counts as "
        f"two forward passes, that is {method.cost:.1f} times the work of cross entropy."
    )
    seconds = relative_seconds(results, method.name) if results else None
    if results is None or seconds is None:
        return text
    return (
        f"{text}\nMeasured: an epoch takes {seconds:.1f} times as long as with cross entropy "
        f"([{results['grid']}](../../results/{results['grid']}.json))."
    )


def relative_seconds(results: Results, method: str) -> float | None:
    """Return the time of an epoch relative to cross entropy, over the columns that both have.

    Other work on the machine only adds to a time, so the fastest seed of a column counts.
    """
    plain = next((m["key"] for m in results["methods"] if m.get("method") == REFERENCE), REFERENCE)
    own, others = 0.0, 0.0
    for column in results["columns"]:
        pair = [_pace(results, name, column["name"]) for name in (method, plain)]
        if pair[0] and pair[1]:
            own, others = own + pair[0], others + pair[1]
    return own / others if others else None


def _pace(results: Results, method: str, column: str) -> float | None:
    runs = [r for r in results["runs"] if (r["method"], r["column"]) == (method, column)]
    return min((r["seconds"] / r["epochs"] for r in runs), default=None)


def _times(count: float, what: str) -> str:
    return f"one {what} pass" if count == 1 else f"{count:g} {what} passes"


def _numbers(method: Method, results: Results | None) -> list[list[str]]:
    """Return the measured numbers, nothing if there are none."""
    if results is None or not any(run["method"] == method.name for run in results["runs"]):
        return []
    columns = [column["name"] for column in results["columns"]]
    rows = [["%", *columns]]
    for number, title in NUMBERS.items():
        rows.append([title, *(_spread(results, number, method.name, c) for c in columns)])
    return rows


def _measured_with(method: Method, results: Results | None) -> str:
    """Return with which options the numbers were measured."""
    measured = results["methods"] if results else []
    options = [" ".join(m["options"]) for m in measured if m["key"] == method.name]
    return f"`{options[0]}`" if any(options) else "the defaults"


def _spread(results: Results | None, number: str, method: str, column: str) -> str:
    if results is None:
        return "–"
    return percent(spread(results, number, method=method, column=column), results["seeds"])


def write(folder: Path, results: Results | None = None) -> None:
    """Write all pages, and remove those of methods that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(results)
    for file in folder.glob("*.md"):
        if file.name not in made and file.read_text(encoding="utf-8").startswith(MARK):
            file.unlink()
    for name, text in made.items():
        write_text(folder / name, text)


def load_results(file: Path) -> Results | None:
    """Return the results of a grid, None if nothing was measured yet."""
    if not file.is_file():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m reproduction.pages FOLDER RESULTS")
    write(Path(sys.argv[1]), load_results(Path(sys.argv[2])))
