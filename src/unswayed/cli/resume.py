"""Resume an interrupted run."""

from __future__ import annotations

import argparse
from pathlib import Path

from unswayed.cli.train import show_run, watched


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="a run folder")


def run(args: argparse.Namespace) -> int:
    """Resume, and print the numbers."""
    from unswayed.runs import Run

    found = Run(Path(args.run))
    show_run(watched(found.recipe, found.path))
    return 0
