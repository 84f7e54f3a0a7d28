"""Decode image files once: into memory if they are few, else into a memory-mapped file.

The key of the cache is made of names, sizes and times of the files, and of how they are decoded. So
a second run starts at once, and a changed file is detected. A row counts only once its pixels are
written, so a build that was killed is continued.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.decode import Resize, decode
from unswayed.data.progress import tell
from unswayed.data.stores import FileImages, MappedImages, Store, signature
from unswayed.errors import UsageError

Cache = Literal["auto", "memory", "disk", "stream"]
MEMORY_BYTES = 2**26
CHUNK = 256
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
    chosen = choose(cache, needed)
    if chosen == "memory":
        return _in_memory(paths, channels, size, resize)
    how = (channels, size, resize)
    key = signature(paths, ("v1", how))
    folder = cache_root() / key[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        shape = (len(paths), channels, *size) if chosen == "disk" else None
        status = _build(paths, how, folder, shape)
    rows = np.flatnonzero(status == GOOD)
    bad = _reasons(folder, status)
    if chosen == "stream":
        return Decoded(
            FileImages([paths[i] for i in rows.tolist()], channels, size, resize), rows, bad
        )
    pixels = np.memmap(folder / "pixels.u8", np.uint8, "r", shape=(len(paths), channels, *size))
    return Decoded(MappedImages(pixels, rows, key), rows, bad)


def choose(cache: Cache, needed: int) -> Cache:
    """Choose for "auto", and refuse to fill a disk or the memory."""
    if cache == "memory":
        check_memory(needed)
    if cache in ("memory", "stream") or (cache == "auto" and needed <= MEMORY_BYTES):
        return "stream" if cache == "stream" else "memory"
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
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


def _attempts(
    paths: Sequence[Path], rows: Iterable[int], how: tuple[int, tuple[int, int], Resize]
) -> Iterator[tuple[int, Tensor | str]]:
    """Yield every row with its pixels, or with the reason why the file cannot be read."""
    channels, size, resize = how

    def attempt(row: int) -> tuple[int, Tensor | str]:
        try:
            return row, decode(paths[row], channels, size, resize)
        except UsageError as error:
            return row, str(error)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(attempt, rows)


def _in_memory(
    paths: Sequence[Path], channels: int, size: tuple[int, int], resize: Resize
) -> Decoded:
    pixels = torch.zeros(len(paths), channels, *size, dtype=torch.uint8)
    bad: dict[int, str] = {}
    for row, found in _attempts(paths, range(len(paths)), (channels, size, resize)):
        if isinstance(found, str):
            bad[row] = found
        else:
            pixels[row] = found
        if row % CHUNK == 0:
            tell("reading images", row, len(paths))
    rows = np.array([row for row in range(len(paths)) if row not in bad], dtype=np.int64)
    return Decoded(pixels[torch.from_numpy(rows)] if bad else pixels, rows, bad)


def _build(
    paths: Sequence[Path],
    how: tuple[int, tuple[int, int], Resize],
    folder: Path,
    shape: tuple[int, ...] | None,
) -> NDArray[np.uint8]:
    """Decode the rows that are missing; without a shape, only check that they can be read."""
    # A list of what is readable is worth keeping too, but is not the same as having the pixels.
    file = folder / ("status.u8" if shape else "checked.u8")
    status = _mapped(file, (len(paths),))
    todo = np.flatnonzero(status == PENDING)
    if len(todo) == 0:
        return np.array(status)
    pixels = _mapped(folder / "pixels.u8", shape) if shape else None
    with (folder / "bad.jsonl").open("a", encoding="utf-8") as reasons:
        for start in range(0, len(todo), CHUNK):
            chunk = todo[start : start + CHUNK]
            verdicts = np.full(len(chunk), GOOD, np.uint8)
            for place, (row, found) in enumerate(_attempts(paths, chunk.tolist(), how)):
                if isinstance(found, str):
                    verdicts[place] = BAD
                    reasons.write(json.dumps([row, found]) + "\n")
                elif pixels is not None:
                    pixels[row] = found.numpy()
            reasons.flush()
            status[chunk] = verdicts
            tell("decoding images", int((status != PENDING).sum()), len(paths))
    for mapped in (pixels, status):
        if isinstance(mapped, np.memmap):
            mapped.flush()
    return np.array(status)


def _mapped(file: Path, shape: tuple[int, ...]) -> np.memmap:
    wanted = int(np.prod(shape))
    if not file.exists() or file.stat().st_size != wanted:
        with file.open("wb") as fresh:
            fresh.truncate(wanted)
    return np.memmap(file, np.uint8, "r+", shape=shape)


def _reasons(folder: Path, status: NDArray[np.uint8]) -> dict[int, str]:
    known: dict[int, str] = {}
    file = folder / "bad.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            row, reason = json.loads(line)
        except json.JSONDecodeError:  # cut short by a kill; the row is decoded again
            continue
        known[row] = reason
    bad = np.flatnonzero(status == BAD).tolist()
    return {row: known.get(row, "not a readable image") for row in bad}
