"""The tables of a grid as CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from unswayed.bench.tables import ORIGIN, WHAT, Place, Results, places
from unswayed.report.table import Spread
from unswayed.report.templates import fill

COLUMNS = ["grid", "number", "method", "preset", "column", "mean", "deviation", "n"]
COLUMNS += ["published_mean", "published_deviation", "difference", "source", "settings"]
COLUMNS += ["seeds", "runs", "commits", "machines", "torch", "data"]

TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "λ": r"$\lambda$", "τ": r"$\tau$"}
TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
TEX |= {char: f"\\{char}" for char in "&%$#_{}"}


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
    """Return a table for each kind of number, with published numbers in grey below ours."""
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
    """Return the caption of the tables."""
    text = f"Mean ± sample standard deviation over {results['seeds']} seeds. "
    if "published" in results:
        others = results["published"]
        text += (
            f"Below ours: {others['source']}, and the difference, green and red where its 95 % "
            f"interval (Welch) leaves out zero; with one run nothing is known. {others['note']}"
        )
    return text.strip()


def to_html(results: Results) -> str:
    """Return a page without scripts; a tooltip names the runs of each entry."""
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
