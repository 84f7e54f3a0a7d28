"""What the paper claims, each claim tested on our tables.

`python -m unswayed.bench.claims results docs/reproduction.md` writes the page from the JSON files
of `unswayed bench`. A claim holds where the 95 % interval of the difference lies above zero, does
not where it lies below, and is open otherwise.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from unswayed.bench.grid import slug
from unswayed.bench.results import Results, markdown
from unswayed.report.table import t_quantile
from unswayed.training.files import write_text

FIGURES = "figures/"
"""With this begins the name of a figure's file, which a claim may be about in place of a table."""

NOTHING: Results = {"runs": []}
ALIKE = 1.0
"""Points: what is surely smaller is called no difference."""


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
    text = (resources.files("unswayed.bench") / "claims.toml").read_text(encoding="utf-8")
    return [_claim(entry) for entry in tomllib.loads(text)["claims"]]


def _claim(entry: Mapping[str, Any]) -> Claim:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Claim(**fields)


def findings(claim: Claim, results: Results) -> list[Finding]:
    """Return a finding against each rival; none where nothing was measured."""
    found = []
    for rival in claim.worse:
        own, other = (_by_seed(side, claim, results) for side in (claim.better, rival))
        seeds = sorted(own.keys() & other.keys())
        differences = [own[seed] - other[seed] for seed in seeds]
        if claim.more_than:
            first, second = (_by_seed(side, claim, results) for side in claim.more_than)
            seeds = [seed for seed in seeds if seed in first and seed in second]
            differences = [own[seed] - other[seed] - (first[seed] - second[seed]) for seed in seeds]
        if differences:
            found.append(_finding(rival, [100 * each for each in differences], claim.least))
    return found


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


def _finding(rival: str, differences: Sequence[float], least: float) -> Finding:
    """Return mean and t interval; of one seed nothing is known but the difference."""
    n, mean = len(differences), fmean(differences)
    if n < 2:
        return Finding(rival, mean, -math.inf, math.inf, n, least)
    half = t_quantile(n - 1) * stdev(differences) / math.sqrt(n)
    return Finding(rival, mean, mean - half, mean + half, n, least)


def verdict(found: Sequence[Finding]) -> str:
    """Return what all rivals together say; it takes one to refute."""
    words = {each.verdict for each in found}
    if not words:
        return "not measured"
    if "does not hold" in words:
        return "holds only against some" if "holds" in words else "does not hold"
    return words.pop() if len(words) == 1 else "open"


PAGE = """\
<!-- Made by `make claims`; edit src/unswayed/bench/claims.toml or claims.py instead. -->
# The paper's claims, tested at the size of two cores

{intro}

{table}

## Every comparison

{details}
"""

INTRO = """\
Absolute numbers of 550 epochs on a GPU are out of reach for two cores; the claims are not. Each
row is a statement of the paper, our test of it, and what came out: the mean difference in points of
the last epoch's test accuracy (or of what else the test names), its 95 % t-interval over seeds,
paired, and n. The paper's own numbers are of the best epoch on the test set, which no user knows;
the last column has the verdict on those. A claim *holds* if the interval lies above zero, or above
the number that the test names, against every rival; it *does not hold* if it lies below for some
rival and above for none, *holds only against some* if there are both, makes *no difference* here if
the interval lies within a point of zero, and is *open* otherwise. The rival shown is the one whose
interval reaches lowest. Many tests are made here: one in twenty intervals misses.

λ and τ of CTRR were found by trials on these data with looks at their test accuracy, while its
rivals have the options of their papers: that favours CTRR. On the digits of the demo, cross entropy
comes within a point of CTRR once its learning rate is chosen on a hold-out
([lab notebook](lab-notebook.md)). What is trained is in the tables that are linked; how, in their
grids."""


def page(tables: Mapping[str, Results]) -> str:
    """Return the page from results by the names of their tables."""
    rows = [["", "the paper says", "our test", "result", "verdict", "on the best epoch"]]
    details = [["", "over", "points", "n", ""]]
    for number, claim in enumerate(claims(), start=1):
        table = tables.get(claim.table, NOTHING)
        found = findings(claim, table)
        rows.append([str(number), *_row(claim, found), _on_best(claim, table)])
        details += [[str(number), f.rival, f.points, str(f.n), f.verdict] for f in found]
    return PAGE.format(
        intro=INTRO, table=markdown(rows, words=6), details=markdown(details, words=5)
    )


def _on_best(claim: Claim, table: Results) -> str:
    """Return the verdict for the paper's number, where the claim is about a test accuracy."""
    if claim.number != "last":
        return "–"
    found = findings(replace(claim, number="oracle_best"), table)
    return verdict(found) if found else "–"


def _row(claim: Claim, found: Sequence[Finding]) -> list[str]:
    nearest = min(found, key=lambda each: (each.low, each.mean), default=None)
    place = "figures.md" if claim.table.startswith(FIGURES) else f"../results/{claim.table}.md"
    link = f"[{claim.table}]({place})" if found else claim.table
    return [
        f"{claim.says} ({claim.source})",
        f"{link}: {_test(claim)}" + (f". {claim.note}" if claim.note else ""),
        "–" if nearest is None else str(nearest),
        f"**{verdict(found)}**",
    ]


def _test(claim: Claim) -> str:
    """Return what is compared, in words."""
    rivals = claim.worse[0] if len(claim.worse) == 1 else f"each of {len(claim.worse)} rivals"
    words = f"{claim.better} above {rivals}"
    if claim.more_than:
        words += f", by more than {claim.more_than[0]} above {claim.more_than[1]}"
    if claim.columns:
        words += f"; * is the mean over {', '.join(claim.columns)}"
    if claim.least:
        words += f"; by more than {claim.least:+g} points"
    return words + ("" if claim.number == "last" else f"; {claim.number}")


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
        sys.exit("usage: python -m unswayed.bench.claims RESULTS PAGE")
    folder, target = map(Path, sys.argv[1:])
    write_text(target, page(dict(tables(folder))))


if __name__ == "__main__":
    main()
