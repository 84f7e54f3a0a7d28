"""What is in a folder or a table of images, before anybody trains on it."""

from __future__ import annotations

import hashlib
import math
import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import UnidentifiedImageError

from unswayed.data.decode import open_image, opened
from unswayed.data.layout import find_layout
from unswayed.data.listing import (
    MAX_BAD,
    SIDES,
    Listing,
    OutsideLinkError,
    only_in_test,
)
from unswayed.data.progress import tell
from unswayed.data.tables import read_table
from unswayed.errors import UsageError, one_line

FEW, RARE = 10, 0.1
BATCH, EXAMPLES = 32, 200
MISSING = "there is no such file"
Header = tuple[str, str, tuple[int, int]]
"""Format, mode and (width, height)."""


@dataclass
class Findings:
    """What was found; counts are of files."""

    kind: str  # folder or manifest
    path: Path
    counts: dict[str, Counter[str]]  # split -> class -> images
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)  # (width, height)
    modes: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)  # id -> why
    duplicates: list[list[str]] = field(default_factory=list)  # ids with the same bytes
    conflicts: list[list[str]] = field(default_factory=list)  # ... but different labels
    leaks: list[list[str]] = field(default_factory=list)  # ... both in train and in test
    remarks: list[str] = field(default_factory=list)
    mend: list[str] = field(default_factory=list)  # why nothing can be trained on it
    options: list[str] = field(default_factory=list)  # without which a training would refuse
    examples: list[Path] = field(default_factory=list)  # some files of all that can be read

    @property
    def train_command(self) -> str:
        """The command that trains on it, for a shell."""
        return shlex.join(
            ("unswayed", "train", "cpu/auto", f"data.path={self.path}", *self.options)
        )

    @property
    def clean_command(self) -> str:
        """The command that finds its wrong labels, for a shell."""
        return shlex.join(("unswayed", "clean", str(self.path), *self.options))


def inspect(path: Path) -> Findings:
    """Decode every file, and compare the bytes of files of equal length."""
    found = Findings("manifest" if path.is_file() else "folder", path, {})
    splits = _listings(path, found)
    found.counts |= {name: Counter(part.labels) for name, part in splits.items()}
    whole = Listing(next(iter(splits.values())).root)
    for part in splits.values():
        for name in part.names:
            whole.names.append(name)
        for name in part.ids:
            whole.ids.append(name)
        whole.labels += part.labels
    _look_at_images(whole, found)
    _find_duplicates(whole, found, len(splits["train"]))
    _remark_on_balance(found)
    _check_unreadable(splits, found)
    found.mend += _mend(splits, found)
    good = [
        p for p, name in zip(whole.paths, whole.ids, strict=True) if name not in found.unreadable
    ]
    found.examples = good[:: max(1, len(good) // EXAMPLES)]
    return found


def _listings(path: Path, found: Findings) -> dict[str, Listing]:
    if path.is_file():
        parts = read_table(path, path.parent)
        return {name: part for name, part in parts.items() if part}
    if not path.is_dir():
        raise UsageError(f"there is no folder and no file {path}")
    try:
        layout = find_layout(path)
    except OutsideLinkError as error:
        layout = find_layout(path, links=True)
        found.remarks.append(str(error))
        found.options.append("data.links=true")
    found.remarks += layout.remarks
    return layout.listings()


def _look_at_images(listing: Listing, found: Findings) -> None:
    def look(rows: range) -> list[Header | str]:
        return [_look(listing.paths[row]) for row in rows]

    # Many files to a task: a task for every small file would take longer than looking at it.
    tasks = [range(at, min(at + BATCH, len(listing))) for at in range(0, len(listing), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows, answers in zip(tasks, pool.map(look, tasks), strict=True):
            tell("looking at images", rows.start, len(listing))
            for row, seen in zip(rows, answers, strict=True):
                if isinstance(seen, str):
                    found.unreadable[listing.ids[row]] = seen
                else:
                    found.formats[seen[0]] += 1
                    found.modes[seen[1]] += 1
                    found.sizes[seen[2]] += 1


def _look(path: Path) -> Header | str:
    """Decode an image as a training would, in its smallest form; or say why that fails."""
    try:
        with opened(path) as image:
            seen = image.format or "?", image.mode, image.size
        open_image(path, "RGB", (SIDES[-1], SIDES[-1]))
        return seen
    except FileNotFoundError:
        return MISSING
    except UnidentifiedImageError:
        return "it is not an image" if path.stat().st_size else "the file is empty"
    except Exception as error:  # Pillow raises many kinds
        return one_line(str(error)) or type(error).__name__


def _find_duplicates(listing: Listing, found: Findings, train: int) -> None:
    """Group files of equal bytes; only those of equal length are read. The first `train` train."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, path in enumerate(listing.paths):
        if listing.ids[row] not in found.unreadable:
            by_length[path.stat().st_size].append(row)
    alike = [rows for rows in by_length.values() if len(rows) > 1]
    by_content: dict[bytes, list[int]] = defaultdict(list)
    for number, rows in enumerate(alike):
        for row in rows:
            content = listing.paths[row].read_bytes()
            by_content[hashlib.blake2b(content, digest_size=16).digest()].append(row)
        if number % 100 == 0:
            tell("comparing images", number, len(alike))
    for rows in by_content.values():
        if len(rows) > 1:
            ids = [listing.ids[row] for row in rows]
            found.duplicates.append(ids)
            if len({listing.labels[row] for row in rows}) > 1:
                found.conflicts.append(ids)
            if len({row < train for row in rows}) > 1:
                found.leaks.append(ids)


def _remark_on_balance(found: Findings) -> None:
    counts = found.counts["train"]
    middle = float(np.median(list(counts.values()))) if counts else 0.0
    found.remarks += _rare(counts.items(), middle)


def _rare(counts: Iterable[tuple[str, int]], middle: float) -> list[str]:
    return [
        f"class {name!r} has {count} images, the median class {middle:.0f}"
        for name, count in counts
        if count < FEW or count < RARE * middle
    ]


def _check_unreadable(splits: Mapping[str, Listing], found: Findings) -> None:
    """Remark where a training would refuse, and allow as much as there is."""
    shares = []
    for name, part in splits.items():
        bad = sum(each in found.unreadable for each in part.ids)
        if bad > MAX_BAD * len(part):
            shares.append(bad / len(part))
            found.remarks.append(
                f"{bad} of {len(part)} {name} images cannot be read: a training would refuse, as "
                f"data.max_bad={MAX_BAD:g}; mend or remove them, or allow more"
            )
    if shares:
        found.options.append(f"data.max_bad={math.ceil(100 * max(shares)) / 100:g}")


def _mend(splits: Mapping[str, Listing], found: Findings) -> list[str]:
    """Say what has to be mended before anything can be trained."""
    train = splits["train"]
    good = Counter(
        label
        for name, label in zip(train.ids, train.labels, strict=True)
        if name not in found.unreadable
    )
    if not good and all(found.unreadable[name] == MISSING for name in train.ids):
        return [
            f"none of the {len(train)} files exists, such as {train.paths[0]}: paths must be "
            f"relative to {found.path.parent.absolute()}, or to the folder that data.root names"
        ]
    if not good:
        return ["no training image can be read"]
    if len(good) < 2:
        return [f"there is one class only, {next(iter(good))!r}: nothing to tell apart"]
    if max(good.values()) < 2:
        return ["no class has two images: put at least a few into every class"]
    test = splits.get("test")
    return [words] if test and (words := only_in_test(train, test)) else []
