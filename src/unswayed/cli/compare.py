"""Put finished runs side by side.

Runs that differ in nothing but the seed share a row: mean ± standard deviation.
"""

from __future__ import annotations

import argparse

from unswayed.cli.show import comparison_table, console
from unswayed.report.table import comparison
from unswayed.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run folders")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    rows = comparison([Run(path) for path in args.runs])
    console().print(comparison_table(rows, oracle=True))
    return 0
