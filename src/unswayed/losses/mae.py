"""Mean absolute error. Ghosh, Kumar & Sastry, AAAI 2017."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.losses import Loss, register
from unswayed.losses.reduction import Reduction, reduced


def mae_loss(logits: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Mean absolute error 1 - p_y, half of |p - e_y|_1; its sum over all labels is K - 1.

    Args:
        logits: (B, K).
        target: (B,) class indices.
        reduction: "none", "mean" or "sum".
    """
    log_p = -F.cross_entropy(logits, target, reduction="none")  # (B,)
    return reduced(-torch.expm1(log_p), reduction)  # 1 - p, with its digits as p -> 1


@register("mae", paper="Ghosh, Kumar & Sastry, AAAI 2017")
class MAE(Loss):
    """1 - p_y: tolerates symmetric noise, but underfits where there are many classes."""

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return mae_loss(logits, labels, reduction="none")
