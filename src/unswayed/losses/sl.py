"""Symmetric cross entropy learning. Wang et al., ICCV 2019."""

from __future__ import annotations

import math
from typing import Annotated

import torch.nn.functional as F
from annotated_types import Lt
from torch import Tensor

from unswayed.losses import Loss, register
from unswayed.losses.mae import mae_loss
from unswayed.losses.reduction import Reduction, reduced
from unswayed.types import NonNegative

LogZero = Annotated[float, Lt(0)]
LOG_ZERO = math.log(1e-4)
"""A, which stands for log 0: the published code clamps the one-hot label at 1e-4."""


def rce_loss(
    logits: Tensor, target: Tensor, *, log_zero: float = LOG_ZERO, reduction: Reduction = "mean"
) -> Tensor:
    """Reverse cross entropy -Σ_k p_k log e_k with log 0 := A, which is -A (1 - p_y).

    Args:
        logits: (B, K).
        target: (B,) class indices.
        log_zero: A, negative.
        reduction: "none", "mean" or "sum".
    """
    return -log_zero * mae_loss(logits, target, reduction=reduction)


def sl_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    log_zero: float = LOG_ZERO,
    reduction: Reduction = "mean",
) -> Tensor:
    """Symmetric cross entropy α CE + β RCE.

    Args:
        logits: (B, K).
        target: (B,) class indices.
        alpha: α, of cross entropy, which learns.
        beta: β, of reverse cross entropy, which tolerates noise.
        log_zero: A, negative; only the product β A matters.
        reduction: "none", "mean" or "sum".
    """
    ce = F.cross_entropy(logits, target, reduction="none")  # (B,)
    rce = rce_loss(logits, target, log_zero=log_zero, reduction="none")
    return reduced(alpha * ce + beta * rce, reduction)


@register("sl", paper="Wang et al., ICCV 2019")
class SL(Loss):
    """α CE + β RCE: cross entropy, and the same with label and prediction swapped."""

    def __init__(
        self, alpha: NonNegative = 0.1, beta: NonNegative = 1.0, log_zero: LogZero = LOG_ZERO
    ) -> None:
        """Store the options.

        Args:
            alpha: α, factor of cross entropy; 6 for CIFAR-100.
            beta: β, factor of reverse cross entropy; 0.1 for CIFAR-100.
            log_zero: A, what stands for log 0; the paper's -4 differs from the published code's
                log 1e-4, and only the product β A matters.
        """
        super().__init__()
        self.alpha, self.beta, self.log_zero = alpha, beta, log_zero

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return sl_loss(
            logits,
            labels,
            alpha=self.alpha,
            beta=self.beta,
            log_zero=self.log_zero,
            reduction="none",
        )
