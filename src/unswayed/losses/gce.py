"""Generalized cross entropy. Zhang & Sabuncu, NeurIPS 2018, eq. 6."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.schedules import PositiveFractionSchedule, value_at
from unswayed.types import BelowOne, Overview


def gce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    q: float = 0.7,
    reduction: Reduction = "mean",
    min_probability: float = 1e-4,
) -> Tensor:
    """Generalized cross entropy (1 - p_y^q) / q: cross entropy as q -> 0, MAE at q = 1.

    >>> import torch
    >>> from unswayed.functional import gce_loss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> gce_loss(logits, torch.tensor([0, 0]), q=1.0, reduction="none")  # 1 - p_y
    tensor([0.1192, 0.8808])

    Args:
        logits: (B, K).
        target: (B,) class indices.
        q: in (0, 1].
        reduction: "none", "mean" or "sum".
        min_probability: p_y is clamped from below here, as CTRR's authors do; a sample below it
            has no gradient. 0 turns the clamp off.
    """
    if not 0 < q <= 1:
        raise UsageError(f"gce: q must be in (0, 1], not {q}")
    return reduced(_generalized(logits, target, q, min_probability), reduction)


def _generalized(logits: Tensor, target: Tensor, q: float | Tensor, least: float) -> Tensor:
    """Return (1 - p_y^q) / q, (B,), with p_y clamped from below."""
    log_p = -F.cross_entropy(logits, target, reduction="none")
    if least > 0:
        log_p = log_p.clamp_min(math.log(least))
    # (1 - exp(q log p)) / q by expm1, which keeps its digits as q -> 0.
    return -torch.expm1(q * log_p) / q


@register("gce", paper="Zhang & Sabuncu, NeurIPS 2018, eq. 6")
class GCE(Loss):
    """(1 - p_y^q) / q: cross entropy as q -> 0, mean absolute error at q = 1."""

    current: Tensor  # () q of this epoch

    def __init__(self, q: PositiveFractionSchedule = 0.7, min_probability: BelowOne = 1e-4) -> None:
        """Store the options.

        Args:
            q: between cross entropy (towards 0) and mean absolute error (1). A ramp from 0.05
                learns like cross entropy at first, and resists wrong labels later. It moves
                before every epoch.
            min_probability: p_y is clamped from below here; 0 turns the clamp off.
        """
        super().__init__()
        self.q, self.min_probability = q, min_probability
        self.register_buffer("current", torch.tensor(value_at(q, 0.0)))

    def before_epoch(self, overview: Overview) -> None:
        """Move q."""
        self.current.fill_(value_at(self.q, overview.epoch / overview.epochs))

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        # A tensor, so that no GPU is waited for, if q moves.
        q = self.q if isinstance(self.q, float | int) else self.current
        return _generalized(logits, labels, q, self.min_probability)
