"""How the functional forms turn one loss per sample into what was asked for."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from unswayed.errors import UsageError

Reduction = Literal["none", "mean", "sum"]


def reduced(losses: Tensor, reduction: Reduction) -> Tensor:
    """Return losses (B,) as they are, their mean or their sum, as PyTorch's functions do."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise UsageError(f"reduction must be 'none', 'mean' or 'sum', not {reduction!r}")
    return losses.mean() if reduction == "mean" else losses.sum()
