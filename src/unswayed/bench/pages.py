"""A page for each method, from what the code and the measurements say.

`python -m unswayed.bench.pages docs/methods results/digits-methods.json` writes docs/methods.
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

from unswayed import methods
from unswayed.bench.results import Results, markdown, percent, relative_seconds, spread
from unswayed.methods import Method
from unswayed.recipe import Recipe
from unswayed.registry import Component
from unswayed.report.options import default_words
from unswayed.training.files import write_text

PARTS = ("learner", "loss", "framework", "regularizer")

MADE = "<!-- Made by `make docs`;"
"""How a page begins that may be replaced or removed."""

PAGE = (
    MADE
    + """ edit src/unswayed/methods/{name}.toml or the docstrings instead. -->
# {title}

{about}

{origin}

    {formula}

Train with it, the demo's digits or a recipe of your own:

    unswayed train digits method={name}
    unswayed train mine.toml method={name}

It consists of

{made_of}
{options}{presets}
## Cost

{cost}
{numbers}"""
)

INDEX = (
    MADE
    + """ edit src/unswayed/methods/*.toml instead. -->
# Methods

`method=NAME` sets learner, loss, framework and regularizer of a recipe; `method=NAME/PRESET` also
the options that a paper or its code tuned for a data set (CTRR's are those of its published code,
which is the BYOL form, also where another framework uses them). `unswayed list methods` prints this
list. Cost counts forwards and, twice, backwards of a step, in those of cross entropy.
{measured}
{table}
"""
)


def pages(results: Results | None = None) -> dict[str, str]:
    """Return all pages by file name; without results they hold no measured numbers."""
    found = {"README.md": index(results)}
    return found | {f"{name}.md": page(methods.get(name), results) for name in methods.names()}


def page(method: Method, results: Results | None = None) -> str:
    """Return the page of a method."""
    recipe = Recipe.load("digits", f"method={method.name}")
    origin = ", ".join(filter(None, (method.paper, method.equation)))
    return PAGE.format(
        name=method.name,
        title=method.title,
        about=method.about,
        origin=f"{origin}:" if origin else "What is minimised:",
        formula=method.formula,
        made_of=_made_of(recipe, method),
        options="".join(_options(part, recipe, method) for part in PARTS),
        presets=_presets(method),
        cost=_cost(method, results),
        numbers=_numbers(method, results),
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
    measured = (
        f"\nThe last columns are the test accuracy of the last epoch, in %, from {_link(results)}, "
        "where the best are marked.\n"
        if results
        else ""
    )
    return INDEX.format(measured=measured, table=markdown(rows, words=3))


def _made_of(recipe: Recipe, method: Method) -> str:
    """Return which components the method consists of, with their one-line summaries."""
    lines = []
    for part in _parts(recipe, method):
        component, _ = recipe.component(part)
        module = component.make.__module__
        source = f"../../src/{module.replace('.', '/')}.py"
        lines.append(f"- {part} [`{component.name}`]({source}): {_plain(component.summary)}")
    return "\n".join(lines)


def _parts(recipe: Recipe, method: Method) -> Iterator[str]:
    """Yield the parts of a recipe that matter for a method."""
    learner, _ = recipe.component("learner")
    for part in PARTS:
        named = f"{part}.name" in method.options
        changed = any(key.startswith(f"{part}.") for key in method.options)
        loss = part == "loss" and "loss" in learner.facts
        if named or changed or loss:
            yield part


def _options(part: str, recipe: Recipe, method: Method) -> str:
    """Return the table of a part's options: the default, what the method sets, what it means."""
    if part not in _parts(recipe, method):
        return ""
    component, _ = recipe.component(part)
    if not component.options:
        return ""
    rows = [["option", "default", "here", "meaning"]]
    rows += [row for name in component.options for row in _option(component, part, name, method)]
    if not any(row[2] for row in rows[1:]):
        rows = [[row[0], row[1], row[3]] for row in rows]
    return f"\n## Options of the {part}\n\n{markdown(rows, words=len(rows[0]))}\n"


def _option(
    component: Component[Any], place: str, name: str, method: Method
) -> Iterator[list[str]]:
    """Yield the row of an option, and of those in it where it is a table of options."""
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
    """A table of options as a component; facts are not known inside, so none is left out."""

    @cached_property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """All fields."""
        return inspect.signature(self.make).parameters


def _plain(text: str) -> str:
    """Return text in which Markdown finds nothing to do."""
    return text.rstrip(".").replace("<", "\\<").replace("[", "\\[")


def _presets(method: Method) -> str:
    if not method.presets:
        return ""
    rows = [["preset", "sets"]]
    for name, options in method.presets.items():
        words = ", ".join(f"`{key} = {_value(value)}`" for key, value in options.items())
        rows.append([f"`{method.name}/{name}`", words])
    return f"\n## Presets\n\n{markdown(rows, words=2)}\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)


def _cost(method: Method, results: Results | None) -> str:
    networks = "one network" if method.networks == 1 else f"{method.networks} networks"
    text = (
        f"A step takes {_times(method.forwards, 'forward')} and "
        f"{_times(method.backwards, 'backward')} of a batch through {networks}: "
        f"{method.cost:.1f} times the work of cross entropy, if a backward takes two forwards."
    )
    seconds = relative_seconds(results, method.name) if results else None
    if results is None or seconds is None:
        return text
    return (
        f"{text}\nMeasured: an epoch takes {seconds:.1f} times the seconds of cross entropy "
        f"([{results['grid']}](../../results/{results['grid']}.json))."
    )


def _link(results: Results) -> str:
    return f"[{results['grid']}](../../results/{results['grid']}.md)"


def _times(count: float, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count:g} {what}s"


def _numbers(method: Method, results: Results | None) -> str:
    """Return the measured numbers, nothing if there are none."""
    if results is None or not any(run["method"] == method.name for run in results["runs"]):
        return ""
    names = {
        "last": "test accuracy, last epoch",
        "selected": "test accuracy, selected on the noisy hold-out",
        "memorised": "wrong labels memorised",
    }
    columns = [column["name"] for column in results["columns"]]
    rows = [["%", *columns]]
    for number, title in names.items():
        rows.append([title, *(_spread(results, number, method.name, c) for c in columns)])
    return (
        f"\n## Numbers\n\n{markdown(rows)}\n\nMean ± sample standard deviation, n = "
        f"{results['seeds']}, from {_link(results)}{_with(method, results)}.\n"
    )


def _with(method: Method, results: Results) -> str:
    """Return with which options the numbers were measured."""
    options = next(m["options"] for m in results["methods"] if m["key"] == method.name)
    return f", with `{' '.join(options)}`" if options else ", with the defaults"


def _spread(results: Results | None, number: str, method: str, column: str) -> str:
    if results is None:
        return "–"
    return percent(spread(results, number, method=method, column=column), results["seeds"])


def write(folder: Path, results: Results | None = None) -> None:
    """Write all pages, and remove those of methods that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(results)
    for file in folder.glob("*.md"):
        if file.name not in made and file.read_text(encoding="utf-8").startswith(MADE):
            file.unlink()
    for name, text in made.items():
        write_text(folder / name, text)


def read(file: Path) -> Results | None:
    """Return the results of a grid, None if nothing was measured yet."""
    if not file.is_file():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m unswayed.bench.pages FOLDER RESULTS")
    write(Path(sys.argv[1]), read(Path(sys.argv[2])))
