"""Backward correction: losses are mixed so that their mean over the noise is the clean one.

Patrini et al., CVPR 2017.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import register
from unswayed.losses.reduction import Reduction, reduced
from unswayed.losses.transition import Corrected, Matrix, mixed

LOG_FLOOR = math.log(1e-7)
"""Probabilities are clipped here, as published: the loss has no lower bound otherwise."""
LARGEST_CONDITION = 1e3
"""Condition number from which on T counts as singular: its inverse would only amplify chance."""


def backward_correction(
    logits: Tensor, target: Tensor, matrix: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """Backward-corrected cross entropy, Σ_j (T^-1)[y, j] (-log p_j); theorem 1. May be negative.

    Args:
        logits: (B, K).
        target: (B,) given labels.
        matrix: (K, K) T, whose row i holds the probabilities of the labels given to class i.
        reduction: "none", "mean" or "sum".
    """
    return reduced(_weighted(logits, target, torch.linalg.inv(matrix)), reduction)


def _weighted(logits: Tensor, target: Tensor, inverse: Tensor) -> Tensor:
    weights = inverse.to(logits)[target]  # (B, K)
    log_p = F.log_softmax(logits, dim=1).clamp_min(LOG_FLOOR)
    return -(weights * log_p).sum(dim=1)


@register("backward", paper="Patrini et al., CVPR 2017, theorem 1")
class Backward(Corrected):
    """Σ_j (T^-1)[y, j] (-log p_j): its mean over the noise is cross entropy of the true label.

    T must be invertible. One that is given must have a condition number below 1000; an estimate
    that has not is mixed with the identity, by 0.05 more each time, until it has.
    """

    def use(self, matrix: Matrix) -> None:
        """Correct with this T, or with what can be inverted of an estimate."""
        condition = np.linalg.cond(matrix)
        if self.best is None and condition >= LARGEST_CONDITION:
            raise UsageError(
                "backward correction needs a matrix that can be inverted; the condition number of "
                f"loss.matrix is {condition:.3g}, and must be below {LARGEST_CONDITION:g}. Set "
                "loss.identity above 0, or use loss.name=forward"
            )
        super().use(invertible(matrix))

    def corrected(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return (B,)."""
        # T can be inverted, and asking a GPU whether it was would wait for it.
        return _weighted(logits, labels, torch.linalg.inv_ex(self.matrix).inverse)


def invertible(matrix: Matrix) -> Matrix:
    """Return T, or the first of its mixtures with the identity that can be inverted well."""
    candidates = (mixed(matrix, step / 20) for step in range(21))
    return next(each for each in candidates if np.linalg.cond(each) < LARGEST_CONDITION)
