"""Choose the options of every method on a noisy hold-out, as docs/protocol.md says.

`unswayed bench reproduction/grids/tuning.toml --save results` trains the trials.
`python -m reproduction.tuning results` then writes reproduction/tuned.toml, which the grids read.
No test accuracy is looked at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from reproduction import FOLDER, grid_file
from unswayed.bench.grid import Grid, slug
from unswayed.bench.tables import Results
from unswayed.files import write_text

TUNED = FOLDER / "tuned.toml"
HEAD = """# Made by `python -m reproduction.tuning results` from the trials of grids/tuning.toml.
# The options of each method that are best on the noisy hold-out of a seed that no table reports.
"""


@dataclass(frozen=True)
class Trial:
    """Options that were tried for a method, and how well the last epoch fits the hold-out."""

    method: str
    number: int
    overrides: tuple[str, ...]
    holdout: float  # mean accuracy on noisy labels over all columns and seeds


def trials(results: Results) -> Iterator[Trial]:
    """Yield the trials that are trained in all columns."""
    grid = Grid.load(grid_file("tuning"))
    found: dict[str, list[float]] = {}
    for run in results["runs"]:
        found.setdefault(run["method"], []).append(run["holdout_last"])
    for row in grid.rows:
        method, _, number = row.label.rpartition(" ")
        scores = found.get(row.key, [])
        if len(scores) == len(grid.columns) * grid.seeds:
            yield Trial(slug(method), int(number), row.set, fmean(scores))


def choose(tried: Sequence[Trial]) -> dict[str, Trial]:
    """Return the trial of each method that fits the hold-out best; on a tie, the first."""
    chosen: dict[str, Trial] = {}
    for trial in tried:
        best = chosen.setdefault(trial.method, trial)
        if trial.holdout > best.holdout:
            chosen[trial.method] = trial
    return chosen


def to_toml(chosen: Mapping[str, Trial]) -> str:
    """Return the file that grids read."""
    lines = [f"{name} = {json.dumps(trial.overrides)}\n" for name, trial in chosen.items()]
    return HEAD + "".join(lines)


def main() -> None:
    """Write the file, and say what was chosen."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m reproduction.tuning RESULTS")
    text = (Path(sys.argv[1]) / "tuning.json").read_text(encoding="utf-8")
    chosen = choose(list(trials(json.loads(text))))
    write_text(TUNED, to_toml(chosen))
    for name, trial in chosen.items():
        options = " ".join(trial.overrides)
        fit = f"{100 * trial.holdout:.1f} %"
        sys.stdout.write(f"{name:14} {fit}, trial {trial.number}: {options}\n")


if __name__ == "__main__":
    main()
