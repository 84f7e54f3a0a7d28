"""The results of a grid as tables of methods × columns, ours beside published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from unswayed.report.table import Spread

DIGITS = 2
"""Decimals of numbers beside published ones."""

WHAT = {
    "last": "last epoch",
    "selected": "selected on the noisy hold-out",
    "oracle_best": "best epoch on the test set (an oracle)",
}

ORIGIN = ("settings", "run", "commit", "machine", "torch", "data")
"""What is known of the runs behind an entry of a table."""

Rows = list[list[str]]
"""A table as text, the header first."""

Results = Mapping[str, Any]


def values(results: Results, number: str, **where: Any) -> list[float]:
    """Return a number of all runs that match conditions such as `method="ce", column="clean"`."""
    return [
        run[number]
        for run in results["runs"]
        if run.get(number) is not None and all(run[key] == value for key, value in where.items())
    ]


def spread(results: Results, number: str, **where: Any) -> Spread | None:
    """Return mean and deviation over the seeds, None if no run has the number."""
    found = values(results, number, **where)
    return Spread.of(found) if found else None


def percent(found: Spread | None, seeds: int, digits: int = 1) -> str:
    """Return `97.3 ± 0.4`, with n if it is not the number of seeds; – if there is no number."""
    if found is None:
        return "–"
    n = f" (n = {found.n})" if found.n != seeds else ""
    return found.percent(digits).removesuffix(" %") + n


class Place(NamedTuple):
    """An entry of a table: our mean over seeds, and the published number."""

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
        """Whether ours is above, below, near or not comparable."""
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
        """The runs behind our number."""
        return "; ".join(
            f"seed {run['seed']}: {run.get('method_used') or run['method']}, "
            + ", ".join(f"{key} {run[key]}" for key in ORIGIN if run.get(key))
            for run in self.runs
        )

    def of_runs(self, key: str) -> str:
        """Return the distinct values of the runs; older results lack some."""
        return " | ".join(dict.fromkeys(str(run[key]) for run in self.runs if key in run))


def places(results: Results, number: str) -> Iterator[list[Place]]:
    """Yield the rows of a table."""
    others = results.get("published", {}).get("numbers", {}).get(number, {})
    for method in results["methods"]:
        row = []
        for column in (each["name"] for each in results["columns"]):
            here = {"method": method["key"], "column": column}
            entry = others.get(method["key"], {}).get(column)
            theirs = Spread(entry[0], entry[1], int(entry[2])) if entry else None
            runs = [r for r in results["runs"] if all(r[k] == v for k, v in here.items())]
            ours = spread(results, number, **here)
            row.append(Place(method, column, ours, theirs, runs, results["seeds"]))
        yield row


def header(results: Results, first: str = "method") -> list[str]:
    """Return the first row of a table."""
    return [first, *(column["name"] for column in results["columns"])]


def table(results: Results, number: str, *, rank: bool) -> Rows:
    """Return header and rows; `rank` sets the best of a column bold and those near it italic."""
    rows = list(places(results, number))
    columns = zip(*rows, strict=True) if rank else ([] for _ in results["columns"])
    rivals = [[place.ours for place in column if place.ours] for column in columns]
    return [
        header(results),
        *([row[0].method["label"], *map(_ranked, row, rivals)] for row in rows),
    ]


def _ranked(place: Place, rivals: Sequence[Spread]) -> str:
    """Return our numbers of a row, marked by rank in their columns."""
    text = percent(place.ours, place.seeds)
    if place.ours is None or len(rivals) < 2:
        return text
    best = max(rivals, key=lambda each: each.mean)
    if place.ours.mean == best.mean:
        return f"**{text}**"
    return f"*{text}*" if place.ours.mean >= best.mean - best.deviation else text


def beside(results: Results, number: str) -> Rows:
    """Return header and rows with entries `ours / theirs / difference`."""
    rows = places(results, number)
    return [header(results), *([row[0].method["label"], *map(_beside, row)] for row in rows)]


def _beside(place: Place) -> str:
    """Return `91.00 / 90.00 / +1.00 ▲`; without a mark the difference may be chance."""
    if place.ours is None and place.theirs is None:
        return "–"
    mark = {"above": " ▲", "below": " ▼"}.get(place.standing, "")
    far = "–" if place.difference is None else f"{place.difference:+.2f}{mark}"
    return f"{percent(place.ours, place.seeds, DIGITS)} / {place.theirs_text} / {far}"


def rates(results: Results) -> Rows:
    """Return the noise rates that methods used; empty if none did."""
    used = [row for row in places(results, "rate_used") if any(place.ours for place in row)]
    if not used:
        return []
    known = {row[0].method["key"]: row for row in places(results, "noise_rate")}
    labelled = [("realised", known[used[0][0].method["key"]])]
    labelled += [(row[0].method["label"], row) for row in used]
    shown = [[label, *(percent(p.ours, p.seeds) for p in row)] for label, row in labelled]
    return [header(results, ""), *shown]


def cost(results: Results) -> Rows:
    """Return the computation of each method; empty if no run counted it."""
    flops = {m["label"]: values(results, "flops", method=m["key"]) for m in results["methods"]}
    rows = [[label, f"{fmean(found) / 1e15:.3g}"] for label, found in flops.items() if found]
    return [["method", "PFLOP"], *rows] if rows else []
