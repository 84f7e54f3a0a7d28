"""Forward correction: predictions are made as noisy as the labels. Patrini et al., CVPR 2017."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.losses import register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.losses.transition import Corrected

TINY = 1e-30
"""A label that T holds impossible is that unlikely, so that its logarithm is finite."""


def forward_correction(
    logits: Tensor, target: Tensor, matrix: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """Forward-corrected cross entropy, -log Σ_i p_i T[i, y]; theorem 2.

    Args:
        logits: (B, K).
        target: (B,) given labels.
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
        reduction: "none", "mean" or "sum".
    """
    log_t = matrix.to(logits).clamp_min(TINY).log().T[target]  # (B, K) log T[:, y]
    return reduced(-torch.logsumexp(F.log_softmax(logits, dim=1) + log_t, dim=1), reduction)


@register("forward", paper="Patrini et al., CVPR 2017, theorem 2")
class Forward(Corrected):
    """-log (p T)_y: cross entropy of the noisy label under predictions that T makes noisy."""

    def corrected(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return (B,)."""
        return forward_correction(logits, labels, self.matrix, reduction="none")
