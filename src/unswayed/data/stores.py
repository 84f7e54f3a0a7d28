"""Where the pixels are: in memory, in a memory-mapped file, or in image files.

A store answers `store[rows]` with a uint8 batch (B, C, H, W); a tensor in memory is one already.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Images(Protocol):
    """N images of one shape."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""

    def __len__(self) -> int:
        """Return N."""

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the images of these rows, uint8 (B, C, H, W)."""


@runtime_checkable
class Store(Images, Protocol):
    """Images that are not in memory."""

    def fingerprint(self) -> str:
        """Return a hash that changes when an image does."""

    def prefetch(self, rows: Tensor) -> None:
        """Begin to load rows that will be asked for next."""
