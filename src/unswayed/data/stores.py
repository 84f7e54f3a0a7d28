"""Images that are not in memory: in a memory-mapped file, or in image files.

`store[rows]` is a uint8 batch (B, C, H, W), as with a tensor in memory.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.decode import Resize, decode
from unswayed.data.texts import Paths
from unswayed.processes import cores

HELD = 2**26
"""Bytes of a mapped file that are held before they are given back."""

PIECE = 16
"""Images that a thread decodes at a time: of small ones, a task each would take longer."""

AROUND = 2**16
"""Bytes that the system maps around the place that is read."""


@runtime_checkable
class Store(Protocol):
    """N images of one shape."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""

    def __len__(self) -> int:
        """Return N."""

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the images of these rows, uint8 (B, C, H, W)."""

    def fingerprint(self) -> str:
        """Return a hash that changes when an image does."""

    def prefetch(self, rows: Tensor) -> None:
        """Start loading the rows that are needed next."""


class FileImages:
    """Image files that are decoded when needed, by a few threads."""

    def __init__(
        self,
        paths: Sequence[Path],
        channels: int,
        size: tuple[int, int],
        resize: Resize = "crop",
        threads: int | None = None,
    ) -> None:
        self.paths, self.channels, self.size, self.resize = paths, channels, size, resize
        self._pool = ThreadPoolExecutor(threads or cores(), "decode")
        self._coming: tuple[Tensor, list[Future[Tensor]]] = (torch.empty(0), [])

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""
        return (len(self.paths), self.channels, *self.size)

    def __len__(self) -> int:
        return len(self.paths)

    def _decode(self, rows: Tensor) -> Tensor:
        how = self.channels, self.size, self.resize
        return torch.stack([decode(self.paths[row], *how) for row in rows.tolist()])

    def _start(self, rows: Tensor) -> list[Future[Tensor]]:
        return [self._pool.submit(self._decode, piece) for piece in rows.split(PIECE)]  # type: ignore[no-untyped-call]

    def prefetch(self, rows: Tensor) -> None:
        """Start decoding rows; those that were started before and not fetched are dropped."""
        self._drop()
        self._coming = (rows, self._start(rows)) if len(rows) else self._coming

    def __getitem__(self, rows: Tensor) -> Tensor:
        if not len(rows):
            return torch.empty(0, *self.shape[1:], dtype=torch.uint8)
        known, pieces = self._coming
        if not torch.equal(known, rows):
            self._drop()
            pieces = self._start(rows)
        self._coming = (torch.empty(0), [])
        return torch.cat([piece.result() for piece in pieces])

    def _drop(self) -> None:
        for piece in self._coming[1]:
            piece.cancel()
        self._coming = (torch.empty(0), [])

    def fingerprint(self) -> str:
        """Return a hash of names, sizes and times of the files, as they were first seen."""
        return self._signature

    @cached_property
    def _signature(self) -> str:
        return signature(self.paths, (self.channels, self.size, self.resize))


class MappedImages:
    """Rows of a memory-mapped file of pixels.

    Pages that were read count as memory of the process, so they are given back now and then.
    """

    def __init__(
        self, file: Path, shape: tuple[int, ...], rows: NDArray[np.int64], key: str
    ) -> None:
        with file.open("rb") as opened:  # it stays mapped, even if somebody deletes the cache
            self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._pixels = np.frombuffer(self._map, np.uint8).reshape(shape)
        self._rows, self._key, self._held = rows, key, 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""
        return (len(self._rows), *self._pixels.shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        found = torch.from_numpy(self._pixels[self._rows[rows.numpy()]])
        self._held += max(found.nbytes, len(rows) * AROUND)
        if self._held > HELD and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._held = 0
        return found

    def prefetch(self, rows: Tensor) -> None:
        """Do nothing: the system reads ahead."""

    def fingerprint(self) -> str:
        """Return the key of the file and the rows that are used."""
        return hashlib.sha256(self._key.encode() + self._rows.tobytes()).hexdigest()


class SomeImages:
    """Some rows of another store."""

    def __init__(self, store: Store, rows: NDArray[np.int64]) -> None:
        self._store, self._rows = store, torch.from_numpy(rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""
        return (len(self._rows), *self._store.shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._store[self._rows[rows]]

    def prefetch(self, rows: Tensor) -> None:
        """Start loading the rows that are needed next."""
        self._store.prefetch(self._rows[rows])

    def fingerprint(self) -> str:
        """Return a hash of the store and the rows."""
        rows = self._rows.numpy().tobytes()
        return hashlib.sha256(self._store.fingerprint().encode() + rows).hexdigest()


def signature(paths: Sequence[Path], how: object) -> str:
    """Return a hash of files by name, size and time of change, and of how they are decoded."""
    digest = hashlib.sha256(repr(how).encode())
    texts: Iterable[str] = map(str, paths)
    if isinstance(paths, Paths):  # a million of them make no million `Path`
        texts = (os.path.join(paths.root, name) for name in paths.names)  # noqa: PTH118
    for path in texts:
        digest.update(os.fsencode(path))
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:  # who decodes the file will say why
            digest.update(b"\0\0\0")
        else:
            digest.update(f"\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()
