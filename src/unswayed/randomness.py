"""Randomness as a pure function of (seed, purpose, coordinates), never a state.

Augmentation, sample order, label noise and initial weights are all drawn here. Because nothing
is consumed, a draw does not depend on batch order, workers or an interruption, and exact resume
needs no generator state. The hash is SplitMix64's finaliser chained over the coordinates, in
NumPy's unsigned integers, whose overflow is defined: the same bits on every platform.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bits = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def key_of(text: str) -> int:
    """Return 64 bits that stand for a name or a sample id."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def keys_of(ids: Collection[str]) -> Bits:
    """Return one 64-bit key per id."""
    return np.fromiter(map(key_of, ids), dtype=np.uint64, count=len(ids))


def _mix(x: Bits) -> Bits:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits(seed: int, purpose: str, *coordinates: ArrayLike) -> Bits:
    """Return 64 random bits for every point of the broadcast coordinates."""
    with np.errstate(over="ignore"):
        state = _mix(np.asarray([seed & (2**64 - 1)], dtype=np.uint64) + _GOLDEN)
        for part in (key_of(purpose), *coordinates):
            state = _mix((state ^ np.asarray(part).astype(np.uint64)) * _GOLDEN + _GOLDEN)
    return state


def uniform(seed: int, purpose: str, *coordinates: ArrayLike) -> NDArray[np.float64]:
    """Return numbers in [0, 1) with 53 random bits for the broadcast coordinates."""
    return (bits(seed, purpose, *coordinates) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform32(seed: int, purpose: str, *coordinates: ArrayLike) -> NDArray[np.float32]:
    """Return numbers in [0, 1) with 24 random bits: exact in float32, never rounded to 1."""
    return (bits(seed, purpose, *coordinates) >> np.uint64(40)).astype(np.float32) * np.float32(
        2.0**-24
    )


def normal(seed: int, purpose: str, *coordinates: ArrayLike) -> NDArray[np.float64]:
    """Return standard normal numbers for the broadcast coordinates (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log1p(-uniform(seed, purpose, *coordinates, 0)))
    return np.asarray(radius * np.cos(2 * np.pi * uniform(seed, purpose, *coordinates, 1)))


def permutation(seed: int, purpose: str, keys: Bits, *coordinates: ArrayLike) -> NDArray[np.int64]:
    """Return an order of the keys that depends on each key, not on where it stands."""
    return np.argsort(bits(seed, purpose, *coordinates, keys), kind="stable")


def torch_seed(seed: int, purpose: str) -> int:
    """Return a seed for `torch.manual_seed`, for code that can only draw from a generator."""
    return int(bits(seed, purpose)[0] >> np.uint64(1))
