"""What is in a folder or a table of images, before anybody trains on it."""

from __future__ import annotations

import hashlib
import os
import shlex
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from unswayed.data.listing import MAX_PIXELS, Listing, find_splits, list_classes, settle_size
from unswayed.data.progress import tell
from unswayed.data.tables import fill
from unswayed.errors import UsageError

FEW, RARE = 10, 0.1
BATCH, EXAMPLES = 500, 200
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
    remarks: list[str] = field(default_factory=list)
    side: int = 0
    examples: list[Path] = field(default_factory=list)  # some files of all that can be read

    @property
    def command(self) -> str:
        """The command that trains on it, for a shell."""
        options = f"data.name={self.kind}", f"data.path={self.path}", f"data.size={self.side}"
        return shlex.join(("unswayed", "train", "safe", *options))


def inspect(path: Path) -> Findings:
    """Look at every file's name, size, header and, where sizes are equal, content."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kind, splits = _listings(path)
    found = Findings(kind, path, {name: Counter(part.labels) for name, part in splits.items()})
    found.remarks += [str(warning.message) for warning in said]
    whole = Listing()
    for part in splits.values():
        whole.paths += part.paths
        whole.ids += part.ids
        whole.labels += part.labels
    _read_headers(whole, found)
    _find_duplicates(whole, found)
    _remark_on_balance(found)
    found.side = settle_size(0, whole.paths)
    good = [
        p for p, name in zip(whole.paths, whole.ids, strict=True) if name not in found.unreadable
    ]
    found.examples = good[:: max(1, len(good) // EXAMPLES)]
    return found


def _listings(path: Path) -> tuple[str, dict[str, Listing]]:
    if path.is_file():
        parts = {"train": Listing(), "test": Listing()}
        for _ in fill(parts, path, path.parent):
            pass
        found = "manifest", {name: part for name, part in parts.items() if part}
    elif path.is_dir():
        train, test = find_splits(path)
        listed = {"train": list_classes(train, path, links=True)}
        if test:
            listed["test"] = list_classes(test, path, links=True)
        found = "folder", listed
    else:
        raise UsageError(f"there is no folder and no file {path}")
    if not any(found[1].values()):
        raise UsageError(f"{path} holds no images in class folders, or no rows")
    return found


def _read_headers(listing: Listing, found: Findings) -> None:
    def headers(rows: range) -> list[Header | str]:
        return [_header(listing.paths[row]) for row in rows]

    # Many files to a task: a task for every file would take longer than looking at it.
    tasks = [range(at, min(at + BATCH, len(listing))) for at in range(0, len(listing), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows, answers in zip(tasks, pool.map(headers, tasks), strict=True):
            tell("looking at images", rows.start, len(listing))
            for row, seen in zip(rows, answers, strict=True):
                if isinstance(seen, str):
                    found.unreadable[listing.ids[row]] = seen
                else:
                    found.formats[seen[0]] += 1
                    found.modes[seen[1]] += 1
                    found.sizes[seen[2]] += 1


def _header(path: Path) -> Header | str:
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                return f"{image.width}×{image.height} pixels are too many"
            return image.format or "?", image.mode, image.size
    except Exception as error:  # Pillow raises many kinds
        return str(error) or type(error).__name__


def _find_duplicates(listing: Listing, found: Findings) -> None:
    """Group files of equal bytes; only those of equal length are read."""
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


def _remark_on_balance(found: Findings) -> None:
    counts = found.counts["train"] if "train" in found.counts else Counter[str]()
    if len(counts) == 1:
        found.remarks.append("there is one class only: nothing to tell apart")
    middle = float(np.median(list(counts.values()))) if counts else 0.0
    found.remarks += _rare(counts.items(), middle)


def _rare(counts: Iterable[tuple[str, int]], middle: float) -> list[str]:
    return [
        f"class {name!r} has {count} images, the median class {middle:.0f}"
        for name, count in counts
        if count < FEW or count < RARE * middle
    ]
