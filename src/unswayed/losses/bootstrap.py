"""Bootstrapping: the label is mixed with what the network predicts. Reed et al., ICLR 2015."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.types import Fraction

Mode = Literal["soft", "hard"]


def bootstrap_loss(
    logits: Tensor,
    target: Tensor,
    *,
    beta: float = 0.95,
    mode: Mode = "soft",
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross entropy against β e_y + (1 - β) sg(p), or the one-hot of its largest for "hard".

    Args:
        logits: (B, K).
        target: (B,) class indices.
        beta: β in [0, 1]; 1 is cross entropy.
        mode: "soft" or "hard".
        reduction: "none", "mean" or "sum".
    """
    if mode not in ("soft", "hard"):
        raise UsageError(f"bootstrap: mode must be 'soft' or 'hard', not {mode!r}")
    log_p = F.log_softmax(logits, dim=1)
    believed = log_p.detach().exp()  # (B, K) no gradient: a target is not learned
    if mode == "hard":
        believed = F.one_hot(believed.argmax(dim=1), logits.shape[1]).to(logits.dtype)
    given = F.one_hot(target, logits.shape[1]).to(logits.dtype)
    return reduced(-((beta * given + (1 - beta) * believed) * log_p).sum(dim=1), reduction)


@register("bootstrap", paper="Reed et al., ICLR 2015")
class Bootstrap(Loss):
    """Cross entropy against β e_y + (1 - β) p, what the network believes counting as a label."""

    def __init__(self, beta: Fraction = 0.95, mode: Mode = "soft") -> None:
        """Store the options.

        Args:
            beta: β, how much of the given label is kept; 0.95 is usual for soft, 0.8 for hard.
            mode: mix in all probabilities (soft), or the most probable class (hard).
        """
        super().__init__()
        self.beta, self.mode = beta, mode

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return bootstrap_loss(logits, labels, beta=self.beta, mode=self.mode, reduction="none")
