"""The tables of a grid in other formats than Markdown: CSV for programs, LaTeX, HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from unswayed.bench.results import (
    DIGITS,
    WHAT,
    Results,
    percent,
    published_number,
    spread,
)
from unswayed.report.table import Spread


class Place(NamedTuple):
    """A cell of a table: what we measured there, and what others did."""

    method: Mapping[str, Any]
    column: str
    ours: Spread | None
    theirs: Spread | None
    runs: list[Mapping[str, Any]]

    @property
    def difference(self) -> float | None:
        """Ours minus theirs, in points."""
        if self.ours is None or self.theirs is None:
            return None
        return 100 * (self.ours.mean - self.theirs.mean)

    @property
    def digits(self) -> int:
        """Decimals of ours: as many as theirs have, to be comparable."""
        return DIGITS if self.theirs else 1


def places(results: Results, number: str) -> Iterator[list[Place]]:
    """Yield the rows of a table."""
    for method in results["methods"]:
        row = []
        for column in results["columns"]:
            where = {"method": method["key"], "column": column["name"]}
            row.append(
                Place(
                    method,
                    column["name"],
                    spread(results, number, **where),
                    published_number(results, number, *where.values()),
                    [r for r in results["runs"] if all(r[k] == v for k, v in where.items())],
                )
            )
        yield row


def to_csv(results: Results) -> str:
    """Return one line for each kind of number, method and column; accuracies are fractions."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    header = ["grid", "number", "method", "preset", "column", "mean", "deviation", "n"]
    header += ["published_mean", "published_deviation", "difference", "source", "settings"]
    header += ["seeds", "runs", "commits", "machines", "torch", "data"]
    writer.writerow(header)
    source = results.get("published", {}).get("source", "")
    for number in WHAT:
        for row in places(results, number):
            for place in row:
                writer.writerow(
                    [
                        results["grid"],
                        number,
                        place.method["key"],
                        *_preset(place),
                        place.column,
                        *_three(place.ours),
                        *_three(place.theirs)[:2],
                        "" if place.difference is None else f"{place.difference / 100:.6f}",
                        source if place.theirs else "",
                        *(_of_runs(place, key) for key in ("settings", "seed", "run")),
                        *(_of_runs(place, key) for key in ("commit", "machine", "torch", "data")),
                    ]
                )
    return file.getvalue()


def _of_runs(place: Place, key: str) -> str:
    """Return the different values that the runs of a place have; older results lack some."""
    return " | ".join(dict.fromkeys(str(run[key]) for run in place.runs if key in run))


def _preset(place: Place) -> list[str]:
    used = sorted({str(run.get("method_used") or "") for run in place.runs})
    return [" ".join(used) or str(place.method["method"])]


def _three(found: Spread | None) -> list[str]:
    if found is None:
        return ["", "", "0"]
    return [f"{found.mean:.6f}", f"{found.deviation:.6f}" if found.n > 1 else "", str(found.n)]


LATEX = r"""% {title}; needs booktabs and xcolor
% {source}
\begin{{tabular}}{{l{columns}}}
\toprule
{header} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
"""


def to_latex(results: Results) -> str:
    """Return a table for each kind of number; under ours in grey the published one."""
    names = [column["name"] for column in results["columns"]]
    tables = []
    for number, what in WHAT.items():
        lines = []
        for row in places(results, number):
            cells = [_tex(percent(place.ours, results["seeds"], place.digits)) for place in row]
            lines.append(" & ".join([_tex(row[0].method["label"]), *cells]) + r" \\")
            if any(place.theirs for place in row):
                grey = [_grey(place) for place in row]
                lines.append(" & ".join([r"\quad\textcolor{gray}{published}", *grey]) + r" \\")
        tables.append(
            LATEX.format(
                title=_tex(f"{results['grid']}: test accuracy in %, {what}"),
                source=_tex(_about(results)),
                columns="r" * len(names),
                header=" & ".join(["method", *map(_tex, names)]),
                rows="\n".join(lines),
            )
        )
    return "\n".join(tables)


def _grey(place: Place) -> str:
    theirs = _tex(percent(place.theirs, place.theirs.n if place.theirs else 0, DIGITS))
    far = ""
    if place.difference is not None:
        colour = {"above": "green!45!black", "below": "red!75!black"}.get(_colour(place), "gray")
        far = rf" \textcolor{{{colour}}}{{{place.difference:+.2f}}}"
    return rf"\textcolor{{gray}}{{{theirs}}}{far}"


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


def _tex(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "±": r"$\pm$",
        "–": "--",
        "λ": r"$\lambda$",
        "τ": r"$\tau$",
    }
    special |= {char: f"\\{char}" for char in "&%$#_{}"}
    special |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "'": "'"}
    return "".join(special.get(char, char) for char in text)


HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }}
table {{ border-collapse: collapse; margin-bottom: 2em }}
th, td {{ border-bottom: 1px solid #ddd; padding: .35em .7em; text-align: right }}
th:first-child, td:first-child {{ text-align: left }}
small {{ color: #666; display: block }}
.above {{ color: #047857 }} .below {{ color: #b91c1c }} .near, .unknown {{ color: #666 }}
</style>
<h1>{title}</h1>
<p>{description}</p>
<p>{about}</p>
{tables}
</html>
"""


def to_html(results: Results) -> str:
    """Return a page without scripts; a cell names its runs when the mouse rests on it."""
    tables = []
    for number, what in WHAT.items():
        names = "".join(f"<th>{escape(column['name'])}</th>" for column in results["columns"])
        rows = "\n".join(
            f"<tr><td>{escape(row[0].method['label'])}</td>"
            + "".join(_cell(place, results["seeds"]) for place in row)
            + "</tr>"
            for row in places(results, number)
        )
        tables.append(
            f"<h2>Test accuracy in %, {escape(what)}</h2>\n"
            f"<table>\n<tr><th>method</th>{names}</tr>\n{rows}\n</table>"
        )
    return HTML.format(
        title=escape(results["grid"]),
        description=escape(results["description"]),
        about=escape(_about(results)),
        tables="\n".join(tables),
    )


def _cell(place: Place, seeds: int) -> str:
    runs = "; ".join(
        f"seed {run['seed']}: {run.get('method_used') or run['method']}, "
        + ", ".join(
            f"{key} {run[key]}"
            for key in ("settings", "run", "commit", "machine", "torch", "data")
            if run.get(key)
        )
        for run in place.runs
    )
    text = escape(percent(place.ours, seeds, place.digits))
    if place.theirs is not None:
        text += f"<small>{escape(percent(place.theirs, place.theirs.n, DIGITS))}"
        if place.difference is not None:
            text += f' <span class="{_colour(place)}">{place.difference:+.2f}</span>'
        text += "</small>"
    return f'<td title="{escape(runs)}">{text}</td>'


def _colour(place: Place) -> str:
    assert place.ours is not None
    assert place.theirs is not None
    return place.ours.against(place.theirs)


FORMATS: dict[str, Callable[[Results], str]] = {
    "csv": to_csv,
    "tex": to_latex,
    "html": to_html,
}
