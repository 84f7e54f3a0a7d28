"""The tables of a grid in other formats than Markdown: CSV for programs, LaTeX, HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from unswayed.bench.results import (
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
    header += ["published_mean", "published_deviation", "source", "seeds", "commits"]
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
                        source if place.theirs else "",
                        " ".join(str(run["seed"]) for run in place.runs),
                        " ".join(sorted({run.get("commit") or "" for run in place.runs})),
                    ]
                )
    return file.getvalue()


def _preset(place: Place) -> list[str]:
    used = sorted({str(run.get("method_used") or "") for run in place.runs})
    return [" ".join(used) or str(place.method["method"])]


def _three(found: Spread | None) -> list[str]:
    if found is None:
        return ["", "", "0"]
    return [f"{found.mean:.6f}", f"{found.deviation:.6f}" if found.n > 1 else "", str(found.n)]


LATEX = r"""% {title}; needs booktabs and xcolor
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
            cells = [_tex(percent(place.ours, results["seeds"])) for place in row]
            lines.append(" & ".join([_tex(row[0].method["label"]), *cells]) + r" \\")
            if any(place.theirs for place in row):
                grey = [_grey(place) for place in row]
                lines.append(" & ".join([r"\quad\textcolor{gray}{published}", *grey]) + r" \\")
        tables.append(
            LATEX.format(
                title=_tex(f"{results['grid']}: test accuracy in %, {what}"),
                columns="r" * len(names),
                header=" & ".join(["method", *map(_tex, names)]),
                rows="\n".join(lines),
            )
        )
    return "\n".join(tables)


def _grey(place: Place) -> str:
    theirs = percent(place.theirs, place.theirs.n if place.theirs else 0)
    difference = "" if place.difference is None else f" ({place.difference:+.1f})"
    return rf"\textcolor{{gray}}{{{_tex(theirs + difference)}}}"


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
.above {{ color: #047857 }} .below {{ color: #b91c1c }} .near {{ color: #666 }}
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
    about = f"Mean ± sample standard deviation over {results['seeds']} seeds. "
    if "published" in results:
        about += (
            f"Below ours: {results['published']['source']}, and the difference, green and red "
            "where it is more than both deviations together."
        )
    return HTML.format(
        title=escape(results["grid"]),
        description=escape(results["description"]),
        about=escape(about),
        tables="\n".join(tables),
    )


def _cell(place: Place, seeds: int) -> str:
    runs = "; ".join(
        f"seed {run['seed']}: {run.get('method_used') or run['method']}, commit {run.get('commit')}"
        for run in place.runs
    )
    text = escape(percent(place.ours, seeds))
    if place.theirs is not None:
        text += f"<small>{escape(percent(place.theirs, place.theirs.n))}"
        if place.difference is not None:
            text += f' <span class="{_colour(place)}">{place.difference:+.1f}</span>'
        text += "</small>"
    return f'<td title="{escape(runs)}">{text}</td>'


def _colour(place: Place) -> str:
    assert place.ours is not None
    assert place.theirs is not None
    far = place.ours.mean - place.theirs.mean
    if abs(far) <= place.ours.deviation + place.theirs.deviation:
        return "near"
    return "above" if far > 0 else "below"


FORMATS: dict[str, Callable[[Results], str]] = {
    "csv": to_csv,
    "tex": to_latex,
    "html": to_html,
}
