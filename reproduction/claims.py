"""Test on our tables what the paper claims, by the rules of docs/protocol.md.

`python -m reproduction.claims results docs/reproduction.md` writes the page from the JSON files of
`unswayed bench`. A claim holds if the interval of the difference lies above zero. It does not hold
if the interval lies below. Otherwise it is open. Intervals are widened for the number of tests on
the page. A claim about robustness is tested only where cross entropy falls from its peak.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from reproduction import FOLDER, TEMPLATES
from unswayed.bench.grid import slug
from unswayed.bench.tables import Results, spread
from unswayed.files import write_text
from unswayed.report.table import LEVEL, t_quantile
from unswayed.report.templates import fill

FIGURES = "figures/"
"""With this begins the name of a figure's file, which a claim may be about in place of a table."""

NOTHING: Results = {"runs": []}
MAIN = "protocol"
"""The grid whose numbers stand on top of the page."""

ALIKE = 1.0
"""Points: what is surely smaller is called no difference."""

FALL = 5.0
"""Points that cross entropy must fall from its best epoch to its last. Where it does not, wrong
labels do little harm in the first place, and nothing can be robust to them."""

NUMBERS = {"last": "last", "selected": "selected", "oracle_best": "best"}
"""The test accuracies of a run, and what the page calls them."""


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and what must be above what for it to hold."""

    says: str
    source: str
    table: str
    better: str
    worse: tuple[str, ...]
    columns: tuple[str, ...] = ()
    more_than: tuple[str, str] | None = None  # another difference that this one must exceed
    number: str = "last"
    least: float = 0.0  # points that the difference must exceed; below 0, "not worse by more than"
    robustness: bool = True  # whether it is tested only where cross entropy falls
    untested: str = ""  # why nothing here can test it
    note: str = ""  # what a reader must know of the test, or what it shows


@dataclass(frozen=True)
class Finding:
    """A difference in points over seeds that both sides have."""

    rival: str
    mean: float
    low: float
    high: float
    n: int
    least: float = 0.0

    @property
    def verdict(self) -> str:
        """What follows for the claim."""
        if self.low > self.least:
            return "holds"
        if self.high < self.least:
            return "does not hold"
        alike = not self.least and max(-self.low, self.high) < ALIKE
        return "no difference" if alike else "open"

    @property
    def points(self) -> str:
        """The difference and its interval: `+3.1 [+1.0, +5.2]`."""
        interval = f" [{self.low:+.1f}, {self.high:+.1f}]" if self.n > 1 else ""
        return f"{self.mean:+.1f}{interval}"

    def __str__(self) -> str:
        """Return `+3.1 [+1.0, +5.2] over ce, n = 5`."""
        return f"{self.points} over {self.rival}, n = {self.n}"


def claims() -> list[Claim]:
    """Return all claims."""
    text = (FOLDER / "claims.toml").read_text(encoding="utf-8")
    return [_claim(entry) for entry in tomllib.loads(text)["claims"]]


def _claim(entry: Mapping[str, Any]) -> Claim:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Claim(**fields)


def findings(claim: Claim, results: Results, tests: int = 1) -> list[Finding]:
    """Return a finding against each rival; none where nothing was measured.

    Args:
        claim: what is tested.
        results: the runs.
        tests: intervals that have to hold together with these.
    """
    return [
        _finding(rival, [100 * each for each in found], claim.least, tests)
        for rival in claim.worse
        if (found := differences(claim, rival, results))
    ]


def differences(claim: Claim, rival: str, results: Results) -> list[float]:
    """Return what one side is above the other, for every seed that both have."""
    own, other = (_by_seed(side, claim, results) for side in (claim.better, rival))
    seeds = own.keys() & other.keys()
    if not claim.more_than:
        return [own[seed] - other[seed] for seed in sorted(seeds)]
    first, second = (_by_seed(side, claim, results) for side in claim.more_than)
    seeds &= first.keys() & second.keys()
    return [own[seed] - other[seed] - (first[seed] - second[seed]) for seed in sorted(seeds)]


def fall(column: str, results: Results) -> float | None:
    """Return the points that cross entropy falls from its best epoch to its last, the mean."""
    falls = [
        100 * (run["oracle_best"] - run["last"])
        for run in results["runs"]
        if (run["method"], run["column"]) == ("ce", column) and "oracle_best" in run
    ]
    return fmean(falls) if falls else None


def gate(claim: Claim, results: Results) -> str:
    """Return why a claim about robustness is not tested by these runs; empty if it is."""
    if not claim.robustness or claim.table.startswith(FIGURES):
        return ""
    side = claim.better.partition("@")[2].strip()
    trained = {run["column"] for run in results["runs"]}
    for column in claim.columns if side == "*" else (side,):
        found = fall(column, results)
        if found is not None and found < FALL:
            return f"Cross entropy falls by only {found:.1f} points at {column}."
        if found is None and column in trained:
            return f"Cross entropy was not evaluated at every epoch of {column}."
    return ""


def _by_seed(side: str, claim: Claim, results: Results) -> dict[int, float]:
    """Return a side's number for every seed that has it in all columns, the mean over them."""
    method, _, column = (part.strip() for part in side.partition("@"))
    wanted = claim.columns if column == "*" else (column,)
    runs: dict[int, dict[str, float]] = {}
    for run in results["runs"]:
        number = run.get(claim.number)
        if run["method"] == method and run["column"] in wanted and number is not None:
            runs.setdefault(run["seed"], {})[run["column"]] = number
    return {seed: fmean(each.values()) for seed, each in runs.items() if len(each) == len(wanted)}


def _finding(rival: str, differences: Sequence[float], least: float, tests: int) -> Finding:
    """Return mean and t interval, widened after Bonferroni; one seed says nothing of the spread."""
    n, mean = len(differences), fmean(differences)
    if n < 2:
        return Finding(rival, mean, -math.inf, math.inf, n, least)
    half = t_quantile(n - 1, 1 - (1 - LEVEL) / tests) * stdev(differences) / math.sqrt(n)
    return Finding(rival, mean, mean - half, mean + half, n, least)


def verdict(found: Sequence[Finding]) -> str:
    """Return what all rivals together say; it takes one to refute."""
    verdicts = {each.verdict for each in found}
    if not verdicts:
        return "not measured"
    if "does not hold" in verdicts:
        return "holds only against some" if "holds" in verdicts else "does not hold"
    return verdicts.pop() if len(verdicts) == 1 else "open"


def page(tables: Mapping[str, Results]) -> str:
    """Return the page from results by the names of their tables."""
    said = claims()
    tests = sum(len(_tested(claim, tables)) for claim in said)
    rows = [["", "the paper says", "our test", "result", "verdict", *list(NUMBERS.values())[1:]]]
    details, verdicts = [["", "over", *NUMBERS.values(), "n", ""]], []
    for number, claim in enumerate(said, start=1):
        own, *others = (_tested(claim, tables, name, tests) for name in _numbers(claim))
        verdicts.append(_verdict(claim, own, tables))
        cells = _cells(claim, own, tables)
        rows.append([str(number), *cells, *(verdict(each) if each else "–" for each in others)])
        for found in own:
            points = [_points(found.rival, each) for each in others]
            details.append([str(number), found.rival, found.points, *points])
            details[-1] += [str(found.n), found.verdict]
    return fill(
        "claims.md.j2",
        TEMPLATES,
        claims=rows,
        comparisons=details,
        tests=tests,
        verdicts={word: verdicts.count(word) for word in sorted(set(verdicts))},
        overview=overview(tables.get(MAIN, NOTHING)),
    )


def _points(rival: str, found: Sequence[Finding]) -> str:
    """Return the difference to a rival, "–" if that number was not measured."""
    return next((each.points for each in found if each.rival == rival), "–")


def overview(results: Results) -> list[list[str]]:
    """Return the table on top: last, selected and best accuracy of what is trained so far."""
    trained = {kind: {run[kind] for run in results["runs"]} for kind in ("method", "column")}
    columns = [c["name"] for c in results.get("columns", ()) if c["name"] in trained["column"]]
    rows = [["method", *columns]]
    for method in results.get("methods", ()):
        if method["key"] not in trained["method"]:
            continue
        rows.append([method["label"]])
        for column in columns:
            where = {"method": method["key"], "column": column}
            found = [spread(results, name, **where) for name in NUMBERS]
            means = [f"{100 * each.mean:.1f}" if each else "–" for each in found]
            rows[-1].append(" / ".join(means) if any(found) else "–")
    falls = [fall(column, results) for column in columns]
    rows.append(["*fall of ce*", *("–" if f is None else f"{f:.1f}" for f in falls)])
    return rows


def _numbers(claim: Claim) -> Sequence[str]:
    """Return the numbers of a run that a claim is tested on; the first one decides."""
    return list(NUMBERS) if claim.number == "last" else [claim.number, "", ""]


def _tested(
    claim: Claim, tables: Mapping[str, Results], number: str | None = None, tests: int = 1
) -> list[Finding]:
    """Return the findings of a claim; none if nothing here can test it."""
    table = tables.get(claim.table, NOTHING)
    if number == "" or why_untested(claim, table):
        return []
    return findings(replace(claim, number=number or claim.number), table, tests)


def why_untested(claim: Claim, table: Results) -> str:
    """Return why these runs cannot test a claim; empty if they can."""
    return claim.untested or gate(claim, table)


def _verdict(claim: Claim, found: Sequence[Finding], tables: Mapping[str, Results]) -> str:
    untested = why_untested(claim, tables.get(claim.table, NOTHING))
    return "not tested here" if untested else verdict(found)


def _cells(claim: Claim, found: Sequence[Finding], tables: Mapping[str, Results]) -> list[str]:
    nearest = min(found, key=lambda each: (each.low, each.mean), default=None)
    place = "figures.md" if claim.table.startswith(FIGURES) else f"../results/{claim.table}.md"
    link = f"[{claim.table}]({place})" if found else claim.table
    test = f"{link}: {_test(claim)}" + (f". {claim.note}" if claim.note else "")
    return [
        f"{claim.says} ({claim.source})",
        why_untested(claim, tables.get(claim.table, NOTHING)) or test,
        "–" if nearest is None else str(nearest),
        f"**{_verdict(claim, found, tables)}**",
    ]


def _test(claim: Claim) -> str:
    """Return what is compared, in words."""
    rivals = claim.worse[0] if len(claim.worse) == 1 else f"each of {len(claim.worse)} rivals"
    text = f"{claim.better} above {rivals}"
    if claim.more_than:
        text += f", by more than {claim.more_than[0]} above {claim.more_than[1]}"
    if claim.columns:
        text += f"; * is the mean over {', '.join(claim.columns)}"
    if claim.least:
        text += f"; by more than {claim.least:+g} points"
    return text + ("" if claim.number == "last" else f"; {claim.number}")


def tables(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield name and numbers of the tables and figures that claims are about, if they are there."""
    for name in dict.fromkeys(claim.table for claim in claims()):
        file = folder / f"{name}.json"
        if file.is_file():
            found = json.loads(file.read_text(encoding="utf-8"))
            yield name, figure_runs(found) if name.startswith(FIGURES) else found


def figure_runs(measured: Mapping[str, Any]) -> Results:
    """Return what a figure measured at the end, as runs like those of a table.

    Args:
        measured: the file of `memorisation` (curves by noise, features and seed) or of
            `gradient-share` (curves by form and seed).
    """
    if measured["figure"] == "memorisation":
        return {
            "runs": [
                {"method": slug(label), "column": noise, "seed": seed}
                | {"memorised": course[-1][0], "last": course[-1][2]}
                for noise, by_features in measured["curves"].items()
                for label, seeds in by_features.items()
                for seed, course in enumerate(seeds)
            ]
        }
    own = {"eq. 4": "wrong_inner", "eq. 6": "wrong_log"}
    return {
        "runs": [
            {"method": slug(label), "column": "end", "seed": seed}
            | {"wrong pull": course[-1][own[label]]}
            for label, seeds in measured["curves"].items()
            for seed, course in enumerate(seeds)
        ]
    }


def main() -> None:
    """Write the page."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m reproduction.claims RESULTS PAGE")
    folder, target = map(Path, sys.argv[1:])
    write_text(target, page(dict(tables(folder))))


if __name__ == "__main__":
    main()
