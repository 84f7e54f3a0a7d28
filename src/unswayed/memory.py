"""What is remembered: a value for every sample, and what is known on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn


class KnownOnCPU(nn.Module):
    """A module some of whose buffers stay on the CPU, because it decides by them what to do.

    From a GPU, `if self.started:` would have to wait for everything it was given to do.
    """

    on_cpu: tuple[str, ...] = ()
    """The names of these buffers."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name in self.on_cpu:
            setattr(self, name, self.get_buffer(name).cpu())
        return self


class Memory(nn.Module):
    """One value of any shape for each of N samples, which survives a resume."""

    values: Tensor  # (N, ...)

    def __init__(
        self,
        num_samples: int,
        *shape: int,
        fill: float = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> None:
        """Fill the memory.

        Args:
            num_samples: N.
            *shape: of the value of a sample.
            fill: the initial value.
            dtype: of the values; PyTorch's default if not given.
            device: where they are kept.
        """
        super().__init__()
        empty = torch.full((num_samples, *shape), fill, dtype=dtype, device=device)
        self.register_buffer("values", empty)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the values of these rows."""
        return self.values[rows]

    def __setitem__(self, rows: Tensor, values: Tensor | float) -> None:
        """Remember the values of these rows."""
        self.values[rows] = values.to(self.values.dtype) if isinstance(values, Tensor) else values
