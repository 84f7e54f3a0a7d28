"""Many short texts in little memory: their bytes in one block, and where each of them ends.

A million ids as Python's own strings take about 100 MB. Here they take their letters and 8 bytes
each, so data sets of any size can keep ids and paths.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from unswayed.randomness import Bits, keys_of

CODE = "utf-8", "surrogatepass"
"""File names that are not UTF-8 have surrogates in them."""


class Texts(Sequence[str]):
    """Texts that can be read by number, and added at the end.

    >>> from unswayed.data.texts import Texts
    >>> names = Texts(["a.png", "b.png"])
    >>> names.append("c.png")
    >>> names[1], len(names), names == ("a.png", "b.png", "c.png")
    ('b.png', 3, True)
    """

    __hash__ = None  # type: ignore[assignment]  # texts can be added

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._bytes, self._ends = bytearray(), array("q", [0])
        self._keys: Bits | None = None
        for text in texts:
            self.append(text)

    @classmethod
    def from_arrays(cls, letters: NDArray[np.uint8], ends: NDArray[np.int64]) -> Texts:
        """Return what `arrays` was called on."""
        found = cls()
        found._bytes.extend(letters.tobytes())
        found._ends.frombytes(ends.astype(np.int64).tobytes())
        return found

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return all bytes, and where each text ends in them."""
        return np.frombuffer(bytes(self._bytes), np.uint8), np.array(self._ends, np.int64)[1:]

    def append(self, text: str) -> None:
        """Add a text."""
        self._bytes += text.encode(*CODE)
        self._ends.append(len(self._bytes))
        self._keys = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice) -> Texts: ...
    def __getitem__(self, which: int | slice) -> str | Texts:
        if isinstance(which, slice):
            return self.take(range(*which.indices(len(self))))
        row = range(len(self))[which]
        return self._bytes[self._ends[row] : self._ends[row + 1]].decode(*CODE)

    def __iter__(self) -> Iterator[str]:
        for start, end in pairwise(self._ends):
            yield self._bytes[start:end].decode(*CODE)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return self._ends == other._ends and self._bytes == other._bytes
        return isinstance(other, tuple | list) and list(self) == list(other)

    def __repr__(self) -> str:
        more = ", ..." if len(self) > 3 else ""
        return f"Texts([{', '.join(map(repr, self[:3]))}{more}])"

    def take(self, rows: Iterable[Any]) -> Texts:
        """Return the texts of some rows."""
        return Texts(self[int(row)] for row in rows)

    @property
    def keys(self) -> Bits:
        """A 64-bit key of each text, (N,), computed once."""
        if self._keys is None:
            self._keys = keys_of(self)
        return self._keys


class Paths(Sequence[Path]):
    """Files below a folder."""

    def __init__(self, root: Path, names: Texts) -> None:
        self.root, self.names = root, names

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, which: int) -> Path: ...
    @overload
    def __getitem__(self, which: slice) -> Paths: ...
    def __getitem__(self, which: int | slice) -> Path | Paths:
        if isinstance(which, slice):
            return Paths(self.root, self.names[which])
        return self.root / self.names[which]

    def take(self, rows: NDArray[np.int64]) -> Paths:
        """Return the files of some rows."""
        everything = len(rows) == len(self) and bool((np.diff(rows) == 1).all())
        return self if everything else Paths(self.root, self.names.take(rows))


def texts_of(texts: Iterable[str]) -> Texts:
    """Return texts in few bytes, as they are if they are so already."""
    return texts if isinstance(texts, Texts) else Texts(texts)


def are_distinct(*parts: Texts) -> bool:
    """Return whether no two of all texts are equal; only those with equal keys are compared."""
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys, kind="stable")
    alike = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    rows = {int(order[place + more]) for place in alike for more in (0, 1)}
    return len({_one_of(parts, row) for row in rows}) == len(rows)


def _one_of(parts: Sequence[Texts], row: int) -> str:
    """Return a text of several parts, one behind the other."""
    for part in parts:
        if row < len(part):
            return part[row]
        row -= len(part)
    raise IndexError(row)
