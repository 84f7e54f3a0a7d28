"""Generalized cross entropy. Zhang & Sabuncu, NeurIPS 2018, eq. 6."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.types import BelowOne, PositiveFraction


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
    log_p = -F.cross_entropy(logits, target, reduction="none")  # (B,)
    if min_probability > 0:
        log_p = log_p.clamp_min(torch.tensor(min_probability, dtype=torch.float64).log().item())
    # (1 - exp(q log p)) / q by expm1, which keeps its digits as q -> 0.
    return reduced(-torch.expm1(q * log_p) / q, reduction)


@register("gce", paper="Zhang & Sabuncu, NeurIPS 2018, eq. 6")
class GCE(Loss):
    """(1 - p_y^q) / q: cross entropy as q -> 0, mean absolute error at q = 1."""

    def __init__(self, q: PositiveFraction = 0.7, min_probability: BelowOne = 1e-4) -> None:
        """Store the options.

        Args:
            q: between cross entropy (towards 0) and mean absolute error (1).
            min_probability: p_y is clamped from below here; 0 turns the clamp off.
        """
        super().__init__()
        self.q, self.min_probability = q, min_probability

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return gce_loss(
            logits, labels, q=self.q, reduction="none", min_probability=self.min_probability
        )
