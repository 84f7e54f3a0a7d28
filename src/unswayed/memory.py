"""Values remembered for every sample, read and written by row."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
