"""Test the weights of a finished run again.

It prints the accuracy of the last epoch and of the epoch selected on the noisy hold-out. Test
labels are not used to select an epoch.
"""

from __future__ import annotations

import argparse
import json

from rich import box
from rich.table import Table
from rich.text import Text

from unswayed.cli.show import console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Evaluate, and print."""
    from unswayed.runs import Run
    from unswayed.session import evaluate

    found = evaluate(Run(args.run))
    if args.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    weights = [name for name in ("last", "selected") if name in found]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(f"{found['test_images']} test images")
    for name in weights:
        table.add_column(f"{name} (epoch {found[name]['epoch'] + 1})", justify="right")
    table.add_row("all", *(f"{100 * found[name]['test_accuracy']:.2f} %" for name in weights))
    for label in found["last"]["per_class"]:
        table.add_row(
            Text(label), *(f"{100 * found[n]['per_class'][label]:.2f} %" for n in weights)
        )
    console().print(table)
    return 0
