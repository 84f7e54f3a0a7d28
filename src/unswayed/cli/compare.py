"""Compare finished runs.

Runs that differ only in the seed share a row: mean ± standard deviation.
"""

from __future__ import annotations

import argparse
import sys

from unswayed.cli.show import comparison_table, console
from unswayed.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run folders, or folders of them")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from unswayed.report.table import comparison
    from unswayed.runs import find_runs

    runs = {run.path.resolve(): run for path in args.runs for run in find_runs(path)}
    for run in runs.values():
        if not run.finished:
            print(f"{run.path} is not finished; it is left out", file=sys.stderr)
    rows = comparison([run for run in runs.values() if run.finished])
    if not rows:
        raise UsageError("none of these runs is finished")
    console().print(comparison_table(rows, oracle=True))
    return 0
