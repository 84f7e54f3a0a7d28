"""The results of a grid: a JSON file, and a page that is made from it alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unswayed.bench.grid import Cell, Grid
from unswayed.bench.published import Published
from unswayed.bench.runner import finished
from unswayed.bench.tables import WHAT, Results, beside, cost, rates, table, values
from unswayed.files import write_json, write_text
from unswayed.parsing import read_json
from unswayed.report.templates import fill
from unswayed.runs import Run

FAILURES = "failures.json"


class Facts(NamedTuple):
    """The values of a finished run that tables need."""

    numbers: dict[str, Any]
    origin: dict[str, Any]
    noise: str  # its convention, in words


def facts(run: Run) -> Facts:
    """Read a finished run. Nothing else in this package reads run folders."""
    summary, provenance = run.summary, run.provenance
    last, selected, oracle = summary.last, summary.selected, summary.oracle_best
    data, hardware = provenance.data, provenance.hardware
    commit = " ".join(provenance.commits)
    numbers = {
        "last": last.test_accuracy,
        "selected": selected and selected.test_accuracy,
        "selected_epoch": selected and selected.epoch,
        "oracle_best": oracle and oracle.test_accuracy,
        "holdout_last": last.holdout_accuracy,
        "holdout_selected": selected and selected.holdout_accuracy,
        "memorised": last.wrong_as_given,
        "flops": summary.flops,
        "seconds": summary.seconds,
        "epochs": summary.epochs,
        "commit": commit,
        "machine": hardware.name,
        "torch": provenance.software.torch,
        "data": data.fingerprint,
        "noise_rate": provenance.noise.realised_rate,
        "rate_used": run.metrics[-1].terms.get("noise_rate"),
    }
    origin = {
        "unswayed": provenance.unswayed,
        "commit": commit,
        **provenance.software.model_dump(),
        **hardware.model_dump(include={"name", "cores", "threads", "device", "platform"}),
        "training images": data.samples,
        "test images": data.test,
        "test fingerprint": data.test_fingerprint,
    }
    return Facts(numbers, origin, provenance.noise.convention)


class Entry(NamedTuple):
    """A finished cell: its row in the results, and what it shares with the others."""

    cell: Cell
    numbers: dict[str, Any]
    origin: Mapping[str, Any]
    noise: str


def collect(grid: Grid, folder: Path, command: str, saved: Results | None = None) -> dict[str, Any]:
    """Return the numbers of all finished cells of a grid, with their origin.

    Args:
        grid: the cells.
        folder: where their runs are.
        command: that repeats them.
        saved: earlier results, perhaps of another machine, for cells that have no run here.
    """
    runs = _entries(grid, folder, saved or {})
    missing = {cell.folder for cell in grid.cells} - {each.cell.folder for each in runs}
    failures = {place: why for place, why in read_failures(folder).items() if place in missing}
    return {
        "grid": grid.name,
        "description": grid.description,
        "command": command,
        "extends": grid.extends,
        "seeds": grid.seeds,
        "cells": len(grid.cells),
        "epochs": sorted({each.numbers["epochs"] for each in runs}),
        "origin": _agreed(each.origin for each in runs),
        "columns": [
            {
                "name": name,
                "overrides": list(overrides),
                "noise": "; ".join(sorted({e.noise for e in runs if e.cell.column == name})),
            }
            for name, overrides in grid.columns.items()
        ],
        "methods": [_method([c for c in grid.cells if c.row == row]) for row in grid.rows],
        "failures": failures,
        **({"published": _published(grid.published)} if grid.published else {}),
        "runs": [each.numbers for each in runs],
    }


def in_saved(cells: Iterable[Cell], saved: Results) -> dict[str, dict[str, Any]]:
    """Return the rows of earlier results that are these cells' very trainings, by folder."""
    known = {(run.get("run"), run.get("recipe")): run for run in saved.get("runs", ())}
    places = {cell.folder: known.get((cell.folder, cell.fingerprint)) for cell in cells}
    return {place: dict(run) for place, run in places.items() if run}


def _entries(grid: Grid, folder: Path, saved: Results) -> list[Entry]:
    """Return what is known of each cell, from its run or from earlier results."""
    here = {cell.folder for cell in finished(grid.cells, folder)}
    earlier = in_saved([cell for cell in grid.cells if cell.folder not in here], saved)
    noises = {column["name"]: column["noise"] for column in saved.get("columns", ())}
    found = []
    for cell in grid.cells:
        if cell.folder in here:
            known = facts(Run(folder / cell.folder))
            found.append(Entry(cell, _numbers(cell, known), known.origin, known.noise))
        elif run := earlier.get(cell.folder):
            # What all runs shared was stored once; in what they differed, each says for itself.
            own = {"commit": run["commit"], "name": run["machine"], "torch": run["torch"]}
            shared = {k: v for k, v in saved["origin"].items() if not isinstance(v, dict)}
            found.append(Entry(cell, run, shared | own, noises[cell.column]))
    return found


def _published(others: Published) -> dict[str, Any]:
    """Return published numbers as [mean, deviation, n] by kind of number, row and column."""
    numbers: dict[str, dict[str, dict[str, list[float]]]] = {}
    for kind, cells in others.numbers.items():
        for (row, column), each in cells.items():
            entry = [round(each.mean, 6), round(each.deviation, 6), each.n]
            numbers.setdefault(kind, {}).setdefault(row, {})[column] = entry
    about = {"title": others.title, "source": others.source, "note": others.note}
    return {**about, "numbers": numbers}


def _agreed(origins: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that all cells share; if they differ, each value and its count."""
    seen: dict[str, Counter[Any]] = {}
    for origin in origins:
        for key, value in origin.items():
            seen.setdefault(key, Counter())[value] += 1
    return {
        key: next(iter(values)) if len(values) == 1 else {str(v): n for v, n in values.items()}
        for key, values in seen.items()
    }


def _method(cells: Sequence[Cell]) -> dict[str, Any]:
    row = cells[0].row
    chosen = [cell for cell in cells if cell.method != row.name]
    presets = {cell.column: cell.method for cell in chosen}
    settings = {cell.column: cell.settings for cell in chosen}
    return {
        "key": row.key,
        "label": row.title,
        "method": row.name,
        "options": cells[0].options,
        **({"presets": presets, "settings": settings} if presets else {}),
    }


def _numbers(cell: Cell, known: Facts) -> dict[str, Any]:
    """Return the entry of a run."""
    place = {"method": cell.row.key, "column": cell.column, "seed": cell.seed}
    used = {"method_used": cell.method, "settings": cell.settings, "run": cell.folder}
    used["recipe"] = cell.fingerprint
    found = {**place, **known.numbers, **used}
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in found.items()}


def read_failures(folder: Path) -> dict[str, str]:
    """Return why cells failed when they were last tried, by their folders."""
    file = folder / FAILURES
    if not file.is_file():
        return {}
    return {cell: str(why) for cell, why in read_json(file).items()}


def note_failure(folder: Path, cell: Cell, why: str) -> None:
    """Store why a cell failed; an empty reason removes the entry."""
    failures = read_failures(folder)
    if why or cell.folder in failures:
        failures.pop(cell.folder, None)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FAILURES, {**failures, **({cell.folder: why} if why else {})})


def save(
    results: Results, folder: Path, formats: Mapping[str, Callable[[Results], str]] | None = None
) -> list[Path]:
    """Write the JSON file, the page and other formats, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for ending, make in {"json": to_json, "md": render, **(formats or {})}.items():
        written.append(folder / f"{results['grid']}.{ending}")
        write_text(written[-1], make(results))
    return written


def to_json(results: Results) -> str:
    """Return the JSON text, with a line for each run."""
    rest = {key: value for key, value in results.items() if key != "runs"}
    head = json.dumps(rest, indent=2, ensure_ascii=False).removesuffix("\n}")
    rows = ",\n".join(f"    {json.dumps(run, ensure_ascii=False)}" for run in results["runs"])
    return f'{head},\n  "runs": [\n{rows}\n  ]\n}}\n'


def render(results: Results) -> str:
    """Return the page."""
    selected = values(results, "selected") or not results["runs"]
    others = results.get("published", {})
    known = {
        "cells": len(results["methods"]) * len(results["columns"]) * results["seeds"],
        **results,
        "origin": _origin_text(results),
        "exceptions": _exceptions(results["methods"]),
        "last": table(results, "last", rank=True),
        "selected": table(results, "selected", rank=True) if selected else None,
        "oracle": (
            table(results, "oracle_best", rank=True) if values(results, "oracle_best") else None
        ),
        "published": [
            {**others, "what": WHAT[number], "rows": beside(results, number)}
            for number in others.get("numbers", {})
        ],
        "memorised": table(results, "memorised", rank=False),
        "rates": rates(results),
        "cost": cost(results),
    }
    return fill("grid.md.j2", **known)


def _exceptions(methods: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each choice of options that differ from the defaults."""
    groups: dict[str, list[str]] = {}
    for method in methods:
        if method["options"]:
            groups.setdefault(" ".join(method["options"]), []).append(method["label"])
    lines = [f"- {', '.join(labels)}: `{options}`" for options, labels in groups.items()]
    return lines + [f"- {m['label']}: {_presets(m)}" for m in methods if "presets" in m]


def _presets(method: Mapping[str, Any]) -> str:
    """Return which preset a method has in which columns: "`ctrr/cifar10-sym20` (λ 50): sym 20"."""
    columns: dict[str, list[str]] = {}
    for column, name in method["presets"].items():
        columns.setdefault(f"`{name}` ({method['settings'][column]})", []).append(column)
    return "; ".join(f"{preset}: {', '.join(names)}" for preset, names in columns.items())


def _origin_text(results: Results) -> str:
    origin = results["origin"]
    same = [f"{k} {v}" for k, v in origin.items() if not isinstance(v, dict) and k != "name"]
    text = f"Origin: {origin['name']}; " if isinstance(origin.get("name"), str) else "Origin: "
    text += "; ".join(same) + "."
    for key, found in origin.items():
        if isinstance(found, dict):
            most = max(found.values())  # those cells are too many to name
            which = [
                f"{value} ({n} cells{'' if n == most else _whose(results['runs'], key, value)})"
                for value, n in found.items()
            ]
            text += f" **Cells differ in {key}**: {', '.join(which)}."
    return text


def _whose(runs: Sequence[Mapping[str, Any]], key: str, value: str) -> str:
    """Return `: ce, sym 40; ...`, the entries that have a value; empty if runs do not say."""
    found = [run for run in runs if str(run.get({"name": "machine"}.get(key, key))) == value]
    places = dict.fromkeys(f"{run['method']}, {run['column']}" for run in found)
    return f": {'; '.join(places)}" if places else ""
