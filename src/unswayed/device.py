"""The device of a training, its precision, and the CPU's threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.processes import count


def pick_device(name: str) -> torch.device:
    """Return the device of this name; "auto" takes CUDA, then MPS, then the CPU."""
    present = ["cpu"]
    if torch.backends.mps.is_available():
        present.insert(0, "mps")
    if torch.cuda.is_available():
        present[:0] = [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    if count() > 1 and torch.cuda.is_available() and name in ("auto", "cuda"):
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    if name == "auto":
        return torch.device(present[0])
    if name not in (*present, "cuda" if torch.cuda.is_available() else "cpu"):
        raise UsageError(
            f"train.device: there is no device {name!r} here; there are: auto, {', '.join(present)}"
        )
    return torch.device(name)


def sent(x: Tensor, device: torch.device) -> Tensor:
    """Return x on this device. Work that a GPU was given before is not waited for.

    From memory that is not pinned, CUDA has taken the numbers when the call returns, so x may be
    written again. MPS gives no such promise.
    """
    return x.to(device, non_blocking=device.type != "mps")


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse bf16 if the device only emulates it, which is many times slower than fp32."""
    if precision == "bf16" and not has_bf16(device):
        raise UsageError(f"train.precision: this {device.type} has no bf16 units; use fp32")


def has_bf16(device: torch.device) -> bool:
    """Return whether the device computes in bf16 without emulation."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return device.type == "cpu" and bool(native)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use this many CPU threads inside the block; 0 changes nothing."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
