"""The tables of a grid in other formats than Markdown: CSV for programs, LaTeX, HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unswayed.bench.results import DIGITS, WHAT, Results, percent, published_number, spread
from unswayed.report.table import Spread
from unswayed.report.templates import fill

ORIGIN = ("settings", "run", "commit", "machine", "torch", "data")
"""What a cell of the HTML page says of its runs."""

COLUMNS = ["grid", "number", "method", "preset", "column", "mean", "deviation", "n"]
COLUMNS += ["published_mean", "published_deviation", "difference", "source", "settings"]
COLUMNS += ["seeds", "runs", "commits", "machines", "torch", "data"]

TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "λ": r"$\lambda$", "τ": r"$\tau$"}
TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
TEX |= {char: f"\\{char}" for char in "&%$#_{}"}


class Place(NamedTuple):
    """A cell of a table: what we measured there, and what others did."""

    method: Mapping[str, Any]
    column: str
    ours: Spread | None
    theirs: Spread | None
    runs: Sequence[Mapping[str, Any]]
    seeds: int

    @property
    def difference(self) -> float | None:
        """Ours minus theirs, in points."""
        if self.ours is None or self.theirs is None:
            return None
        return 100 * (self.ours.mean - self.theirs.mean)

    @property
    def standing(self) -> str:
        """Where ours stands: above, below, near or unknown."""
        return self.ours.against(self.theirs) if self.ours and self.theirs else "unknown"

    @property
    def ours_text(self) -> str:
        """Ours, with as many decimals as theirs."""
        return percent(self.ours, self.seeds, DIGITS if self.theirs else 1)

    @property
    def theirs_text(self) -> str:
        """Theirs."""
        return percent(self.theirs, self.theirs.n if self.theirs else 0, DIGITS)

    @property
    def origin(self) -> str:
        """Which runs ours comes from."""
        return "; ".join(
            f"seed {run['seed']}: {run.get('method_used') or run['method']}, "
            + ", ".join(f"{key} {run[key]}" for key in ORIGIN if run.get(key))
            for run in self.runs
        )

    def of_runs(self, key: str) -> str:
        """Return the different values that the runs have; older results lack some."""
        return " | ".join(dict.fromkeys(str(run[key]) for run in self.runs if key in run))


def places(results: Results, number: str) -> Iterator[list[Place]]:
    """Yield the rows of a table."""
    for method in results["methods"]:
        row = []
        for column in results["columns"]:
            where = {"method": method["key"], "column": column["name"]}
            ours = spread(results, number, **where)
            theirs = published_number(results, number, *where.values())
            runs = [r for r in results["runs"] if all(r[k] == v for k, v in where.items())]
            row.append(Place(method, column["name"], ours, theirs, runs, results["seeds"]))
        yield row


def to_csv(results: Results) -> str:
    """Return one line for each kind of number, method and column; accuracies are fractions."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    source = results.get("published", {}).get("source", "")
    for number in WHAT:
        for place in (place for row in places(results, number) for place in row):
            presets = sorted({str(run.get("method_used") or "") for run in place.runs})
            writer.writerow(
                [
                    results["grid"],
                    number,
                    place.method["key"],
                    " ".join(presets) or str(place.method["method"]),
                    place.column,
                    *_three(place.ours),
                    *_three(place.theirs)[:2],
                    "" if place.difference is None else f"{place.difference / 100:.6f}",
                    source if place.theirs else "",
                    *map(place.of_runs, ("settings", "seed", *ORIGIN[1:])),
                ]
            )
    return file.getvalue()


def _three(found: Spread | None) -> list[str]:
    if found is None:
        return ["", "", "0"]
    return [f"{found.mean:.6f}", f"{found.deviation:.6f}" if found.n > 1 else "", str(found.n)]


def to_latex(results: Results) -> str:
    """Return a table for each kind of number; under ours in grey the published one."""
    names = [column["name"] for column in results["columns"]]
    tables = []
    for number, what in WHAT.items():
        lines = []
        for row in places(results, number):
            cells = [row[0].method["label"], *(place.ours_text for place in row)]
            lines.append(" & ".join(map(_tex, cells)))
            if any(place.theirs for place in row):
                grey = [r"\quad\textcolor{gray}{published}", *map(_grey, row)]
                lines.append(" & ".join(grey))
        title = _tex(f"{results['grid']}: test accuracy in %, {what}")
        tables.append({"title": title, "lines": lines})
    header = " & ".join(["method", *map(_tex, names)])
    about = _tex(_about(results))
    return fill("grid.tex.j2", tables=tables, header=header, about=about, columns=len(names))


def _grey(place: Place) -> str:
    far = ""
    if place.difference is not None:
        colour = {"above": "green!45!black", "below": "red!75!black"}.get(place.standing, "gray")
        far = rf" \textcolor{{{colour}}}{{{place.difference:+.2f}}}"
    return rf"\textcolor{{gray}}{{{_tex(place.theirs_text)}}}{far}"


def _tex(text: str) -> str:
    return "".join(TEX.get(char, char) for char in text)


def _about(results: Results) -> str:
    """Return what a reader of a table must know."""
    text = f"Mean ± sample standard deviation over {results['seeds']} seeds. "
    if "published" in results:
        others = results["published"]
        text += (
            f"Below ours: {others['source']}, and the difference, green and red where its 95 % "
            f"interval (Welch) leaves out zero; with one run nothing is known. {others['note']}"
        )
    return text.strip()


def to_html(results: Results) -> str:
    """Return a page without scripts; a cell names its runs when the mouse rests on it."""
    tables = [{"what": what, "rows": list(places(results, n))} for n, what in WHAT.items()]
    return fill(
        "grid.html.j2",
        grid=results["grid"],
        description=results["description"],
        about=_about(results),
        columns=[column["name"] for column in results["columns"]],
        tables=tables,
    )


FORMATS: dict[str, Callable[[Results], str]] = {"csv": to_csv, "tex": to_latex, "html": to_html}
