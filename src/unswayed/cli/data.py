"""Inspect data before training on them.

`unswayed data inspect PATH` shows what a folder or a table of images holds, what is wrong
with it, and the commands that find its wrong labels and train on it. Every image is decoded.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from unswayed.cli.loading import data_progress
from unswayed.data.inspect import Findings, inspect

SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    look = actions.add_parser("inspect", help="say what a folder or a table of images holds")
    look.add_argument("path", metavar="PATH", help="a folder, or a .csv, .jsonl or .parquet file")


def run(args: argparse.Namespace) -> int:
    """Inspect, and print."""
    with data_progress():
        found = inspect(Path(args.path))
    print("\n".join(lines(found)))
    return 0


def lines(found: Findings) -> list[str]:
    """Return the findings, one line each."""
    text = [f"{found.kind} {found.path}"]
    for split, counts in found.counts.items():
        total = sum(counts.values())
        text.append(f"{split}: {total} images, {len(counts)} classes")
        text += _first(f"  {name}: {count}" for name, count in counts.most_common())
    text.append("formats: " + _counted(found.formats))
    text.append("modes: " + _counted(found.modes))
    text.append("sizes: " + _counted({f"{w}×{h}": n for (w, h), n in found.sizes.items()}))
    text.append(f"unreadable: {len(found.unreadable)}")
    text += _first(f"  {name}: {why}" for name, why in found.unreadable.items())
    text.append(f"duplicates by content: {len(found.duplicates)} groups")
    leaked = {ids[0] for ids in found.leaks}
    inside = [ids for ids in found.duplicates if ids[0] not in leaked]
    for what, groups in (
        ("inside train or inside test", inside),
        ("both in train and in test", found.leaks),
        ("with different labels", found.conflicts),
    ):
        if groups:
            text.append(f"of these {what}: {len(groups)} groups")
            text += _first(f"  {' = '.join(ids[:5])}" for ids in groups)
    text += [f"note: {remark}" for remark in found.remarks]
    if found.mend:
        return [*text, *(f"mend before training: {what}" for what in found.mend)]
    return [
        *text,
        f"find the wrong labels: {found.clean_command}",
        f"train on it: {found.train_command}",
    ]


def _first(items: Iterable[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    every = list(items)
    more = len(every) - SHOWN
    return every[:SHOWN] + ([f"  and {more} more"] if more > 0 else [])


def _counted(counts: Counter[str] | dict[str, int]) -> str:
    ranked = Counter(counts).most_common()
    rest = f", {len(ranked) - 5} more" if len(ranked) > 5 else ""
    return ", ".join(f"{name} ({count})" for name, count in ranked[:5]) + rest or "–"
