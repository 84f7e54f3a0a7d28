"""Decode image files once: into memory if they are few, else into a memory-mapped file.

The key of the cache is made of names, sizes and times of the files, and of how they are decoded. So
a second run starts at once, and a changed file is detected.

Any number of processes build a cache together, whether torchrun or a person started them. The rows
are divided into shards. Whoever holds the lock of a shard decodes its rows; the system frees the
lock if its holder dies, and another process goes on. A row counts only once its pixels are on the
disk. So a build that was killed is continued, and pixels that are missing are never used.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.decode import Resize, decode
from unswayed.data.progress import tell
from unswayed.data.stores import PIECE, FileImages, MappedImages, Store, signature
from unswayed.data.texts import Paths
from unswayed.errors import UsageError
from unswayed.processes import cores

Cache = Literal["auto", "memory", "disk", "stream"]
How = tuple[int, tuple[int, int], Resize]
MEMORY_BYTES = 2**26
SHARD, CHUNK = 4096, 256
"""Rows that a process takes, and rows that count together. Whatever an image takes, 4,096 of them
end where a page of memory ends: two machines never write the same page of a shared disk."""

PENDING, GOOD, BAD = 0, 1, 2


class Decoded(NamedTuple):
    """Images that could be read, and reasons for those that could not."""

    images: Tensor | Store
    rows: NDArray[np.int64]  # of the files that could be read
    bad: dict[int, str]  # row of a file -> what is wrong with it


def open_images(
    paths: Sequence[Path],
    channels: int,
    size: tuple[int, int],
    resize: Resize = "crop",
    cache: Cache = "auto",
) -> Decoded:
    """Decode files, or open their cache.

    Args:
        paths: image files.
        channels: 1 or 3.
        size: (H, W).
        resize: see `decode`.
        cache: "memory", "disk" (a mapped file), "stream" (decode again every time; the files are
            still checked once), or "auto": memory up to 64 MB, disk where there is room.
    """
    needed = len(paths) * channels * size[0] * size[1]
    how = (channels, size, resize)
    if cache == "memory" or (cache == "auto" and needed <= MEMORY_BYTES):
        check_memory(needed)
        return _in_memory(paths, how)
    key = signature(paths, ("v1", how))
    folder = cache_root() / key[:32]
    folder.mkdir(parents=True, exist_ok=True)
    chosen = choose(cache, needed, folder)
    shape = (len(paths), channels, *size)
    status = _build(paths, how, folder, shape if chosen == "disk" else None)
    rows = np.flatnonzero(status == GOOD)
    bad = _reasons(folder, status)
    if chosen == "disk":
        return Decoded(MappedImages(folder / "pixels.u8", shape, rows, key), rows, bad)
    readable = paths.take(rows) if isinstance(paths, Paths) else [paths[i] for i in rows.tolist()]
    return Decoded(FileImages(readable, channels, size, resize), rows, bad)


def choose(cache: Cache, needed: int, folder: Path) -> Cache:
    """Return disk or stream for "auto", and refuse to fill a disk.

    What is in the folder of the cache already takes no more room: while a cache is built, and
    after that, the choice stays the same.
    """
    if cache == "stream":
        return "stream"
    root = folder.parent
    free = shutil.disk_usage(root).free + sum(map(_room, folder.glob("pixels.u8")))
    fits = needed < 0.8 * free
    if cache == "disk" and not fits:
        raise UsageError(
            f"data.cache: {needed / 1e9:.1f} GB are needed in {root}, {free / 1e9:.1f} GB free; "
            "set UNSWAYED_CACHE to another disk, a smaller data.size, or data.cache=stream"
        )
    tell(f"caching {needed / 1e9:.2f} GB in {root}" if fits else "streaming from files", 0, 1)
    return "disk" if fits else "stream"


def check_memory(needed: int) -> None:
    """Refuse images that would take more bytes than this machine has."""
    if not hasattr(os, "sysconf"):  # Windows
        return
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise UsageError(
            f"data.size: the images would take {needed / 1e9:,.1f} GB of memory, and this machine "
            f"has {there / 1e9:,.1f} GB; choose a smaller data.size"
        )


def cache_root() -> Path:
    """Return UNSWAYED_CACHE, or the user's cache folder."""
    given = os.environ.get("UNSWAYED_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "unswayed"


def _room(file: Path) -> int:
    """Return the bytes that a file takes on its disk; of a new one, most are not written yet."""
    status = file.stat()
    return int(getattr(status, "st_blocks", status.st_size // 512)) * 512


def _attempts(
    pool: ThreadPoolExecutor, paths: Sequence[Path], rows: Sequence[int], how: How
) -> Iterator[tuple[int, Tensor | str]]:
    """Yield every row with its pixels, or with the reason why the file cannot be read."""
    channels, size, resize = how

    def attempt(row: int) -> tuple[int, Tensor | str]:
        try:
            return row, decode(paths[row], channels, size, resize)
        except UsageError as error:
            return row, str(error)

    def attempts(piece: Sequence[int]) -> list[tuple[int, Tensor | str]]:
        return [attempt(row) for row in piece]

    pieces = (rows[at : at + PIECE] for at in range(0, len(rows), PIECE))
    for found in pool.map(attempts, pieces):
        yield from found


def _in_memory(paths: Sequence[Path], how: How) -> Decoded:
    pixels = torch.zeros(len(paths), how[0], *how[1], dtype=torch.uint8)
    bad: dict[int, str] = {}
    with ThreadPoolExecutor(cores()) as pool:
        for row, found in _attempts(pool, paths, range(len(paths)), how):
            if isinstance(found, str):
                bad[row] = found
            else:
                pixels[row] = found
            if row % CHUNK == 0:
                tell("reading images", row, len(paths))
    rows = np.array([row for row in range(len(paths)) if row not in bad], dtype=np.int64)
    return Decoded(pixels[torch.from_numpy(rows)] if bad else pixels, rows, bad)


def _build(
    paths: Sequence[Path], how: How, folder: Path, shape: tuple[int, ...] | None
) -> NDArray[np.uint8]:
    """Decode the rows that are missing; without a shape, only check that they can be read.

    Returns what is known of every row.
    """
    # A list of what is readable is worth keeping too, but is not the same as having the pixels.
    file = folder / ("status.u8" if shape else "checked.u8")
    wait = False  # first do what nobody works on, then see what others have left
    while True:
        with FileLock(folder / ".lock"):
            _make_room(folder, file, len(paths), shape)
        status = np.fromfile(file, np.uint8)
        missing = np.unique(np.flatnonzero(status == PENDING) // SHARD)
        if len(missing) == 0:
            return status
        for shard in missing.tolist():
            with (
                suppress(Timeout),
                FileLock(folder / f".lock-{shard}", timeout=-1 if wait else 0),
            ):
                _build_shard(paths, how, folder, file, shard, shape)
        wait = True


def _make_room(folder: Path, file: Path, rows: int, shape: tuple[int, ...] | None) -> None:
    """Make files of the right length; if one was damaged, all rows are decoded again."""
    lengths = {file: rows}
    if shape:
        lengths[folder / "pixels.u8"] = math.prod(shape)
    if all(each.exists() and each.stat().st_size == length for each, length in lengths.items()):
        return
    for each, length in lengths.items():
        each.unlink(missing_ok=True)  # whoever has it mapped keeps it
        with each.open("wb") as fresh:
            fresh.truncate(length)


def _build_shard(
    paths: Sequence[Path],
    how: How,
    folder: Path,
    file: Path,
    shard: int,
    shape: tuple[int, ...] | None,
) -> None:
    """Decode the rows of a shard that are missing."""
    first = shard * SHARD
    count = min(SHARD, len(paths) - first)
    status = np.memmap(file, np.uint8, "r+", offset=first, shape=(count,))
    todo = np.flatnonzero(status == PENDING)
    reasons = folder / f"bad-{shard}.jsonl"
    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(todo), CHUNK):
            chunk = todo[start : start + CHUNK]
            verdicts = np.full(len(chunk), GOOD, np.uint8)
            rows = (first + chunk).tolist()
            pixels = _pixels(folder, shape, rows)
            for place, (row, found) in enumerate(_attempts(pool, paths, rows, how)):
                if isinstance(found, str):
                    verdicts[place] = BAD
                    with reasons.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps([row, found]) + "\n")
                elif pixels is not None:
                    pixels[row - rows[0]] = found.numpy()
            if pixels is not None:
                pixels.flush()  # before the rows count
            status[chunk] = verdicts
            tell("decoding images", first + int(chunk[-1]) + 1, len(paths))
    status.flush()


def _pixels(folder: Path, shape: tuple[int, ...] | None, rows: list[int]) -> np.memmap | None:
    """Map the pixels of these rows, and of those between them."""
    if shape is None:
        return None
    count, offset = rows[-1] + 1 - rows[0], rows[0] * math.prod(shape[1:])
    return np.memmap(folder / "pixels.u8", np.uint8, "r+", offset, (count, *shape[1:]))


def _reasons(folder: Path, status: NDArray[np.uint8]) -> dict[int, str]:
    known: dict[int, str] = {}
    for file in sorted(folder.glob("bad*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                row, reason = json.loads(line)
            except json.JSONDecodeError:  # cut short by a kill; the row is decoded again
                continue
            known[row] = reason
    bad = np.flatnonzero(status == BAD).tolist()
    return {row: known.get(row, "not a readable image") for row in bad}
