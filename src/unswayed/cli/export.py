"""Write the data of a run with corrected labels.

Decisions of people count: a new label is written, and samples that were removed are left out. What
nobody decided stays as it was, unless --accept takes suggestions that are probable enough. The
original is never touched, and nothing is overwritten but an unchanged export of the same run.
"""

from __future__ import annotations

import argparse

from unswayed.cli.loading import data_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a finished run folder with an audit")
    add("--to", metavar="PATH", help="a new file or folder (default: RUN/corrected...)")
    add(
        "--accept",
        type=float,
        metavar="P",
        help="also take suggestions that are right with at least this probability, such as 0.95",
    )
    add(
        "--as",
        dest="format",
        metavar="FORMAT",
        help="links, copies, moves, manifest, npz, metadata, huggingface or labels (default: as "
        "the data came)",
    )
    add("--changed", action="store_true", help="write only the table of changes")


def run(args: argparse.Namespace) -> int:
    """Export, and say what was changed and what to do next."""
    from unswayed.exports import export

    with data_progress():
        found = export(
            args.run, args.to, accept=args.accept, format=args.format, changed=args.changed
        )
    print(found)
    return 0
