"""Label smoothing, also below zero. Szegedy et al., CVPR 2016; Wei et al., ICML 2022."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Ge, Lt
from torch import Tensor

from unswayed.losses import Loss, register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.types import Fraction, Overview

SmoothingRate = Annotated[float, Ge(-10), Lt(1)]


def label_smoothing_loss(
    logits: Tensor, target: Tensor, *, r: float = 0.1, reduction: Reduction = "mean"
) -> Tensor:
    """Cross entropy against (1 - r) e_y + r/K.

    Args:
        logits: (B, K).
        target: (B,) class indices.
        r: below 1; 0 is cross entropy, below 0 the other classes are pushed away.
        reduction: "none", "mean" or "sum".
    """
    log_p = F.log_softmax(logits, dim=1)
    log_p_y = log_p.gather(1, target[:, None]).squeeze(1)  # (B,)
    return reduced(-(1 - r) * log_p_y - r * log_p.mean(dim=1), reduction)


@register("label_smoothing", paper="Szegedy et al., CVPR 2016; Wei et al., ICML 2022")
class LabelSmoothing(Loss):
    """Cross entropy against (1 - r) e_y + r/K; a negative r suits much noise."""

    started: Tensor
    on_cpu = ("started",)

    def __init__(self, r: SmoothingRate = 0.1, start: Fraction = 0.0) -> None:
        """Store the options.

        Args:
            r: smoothing rate, mostly 0.1 to 0.4; below 0 labels are sharpened instead, and the
                loss has no lower bound, so that a later start is wise.
            start: share of the training before which it is cross entropy.
        """
        super().__init__()
        self.r, self.start = r, start
        self.register_buffer("started", torch.tensor(start == 0))

    def before_epoch(self, overview: Overview) -> None:
        """Begin to smooth once the start is reached."""
        self.started.fill_(overview.epoch >= overview.first_epoch(self.start))

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return label_smoothing_loss(
            logits, labels, r=self.r if self.started else 0.0, reduction="none"
        )
