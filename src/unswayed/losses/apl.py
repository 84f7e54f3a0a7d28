"""Active passive loss: a normalised loss that learns, and one that resists. Ma et al., ICML 2020.

An active loss looks at p_y only, a passive one pushes the other classes down as well. Dividing a
loss by its sum over all labels makes it symmetric: the sum over all labels is one.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.losses.mae import mae_loss
from unswayed.losses.reduction import Reduction, reduced
from unswayed.losses.sl import LOG_ZERO, LogZero, rce_loss
from unswayed.types import NonNegative, PositiveFraction

Active = Literal["nce", "nfl", "ngce"]
Passive = Literal["mae", "rce"]


def normalized_ce(logits: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """NCE, log p_y / Σ_k log p_k.

    Args:
        logits: (B, K), K at least 2.
        target: (B,) class indices.
        reduction: "none", "mean" or "sum".
    """
    return reduced(_normalized(-F.log_softmax(logits, dim=1), target), reduction)


def normalized_focal(
    logits: Tensor, target: Tensor, *, gamma: float = 0.5, reduction: Reduction = "mean"
) -> Tensor:
    """NFL, the focal loss -(1 - p_y)^γ log p_y over its sum over all labels; NCE at γ = 0.

    Args:
        logits: (B, K), K at least 2.
        target: (B,) class indices.
        gamma: γ, at least 0.
        reduction: "none", "mean" or "sum".
    """
    log_p = F.log_softmax(logits, dim=1)
    # At p = 1 the root has an infinite slope, which autograd multiplies with log p = 0.
    rest = (1 - log_p.exp()).clamp_min(torch.finfo(logits.dtype).eps)
    return reduced(_normalized(-(rest**gamma) * log_p, target), reduction)


def normalized_gce(
    logits: Tensor, target: Tensor, *, q: float = 0.7, reduction: Reduction = "mean"
) -> Tensor:
    """NGCE, (1 - p_y^q) / (K - Σ_k p_k^q); NCE as q -> 0.

    Args:
        logits: (B, K), K at least 2.
        target: (B,) class indices.
        q: in (0, 1].
        reduction: "none", "mean" or "sum".
    """
    return reduced(_normalized(-torch.expm1(q * F.log_softmax(logits, dim=1)), target), reduction)


def _normalized(every: Tensor, target: Tensor) -> Tensor:
    """Divide the loss of the target by the sum over all labels; (B, K) -> (B,)."""
    # The sum is smallest where p is uniform, and there it is not zero.
    return every.gather(1, target[:, None]).squeeze(1) / every.sum(dim=1)


@register("apl", paper="Ma et al., ICML 2020")
class APL(Loss):
    """α Active + β Passive; NCE + RCE unless told otherwise."""

    def __init__(
        self,
        active: Active = "nce",
        passive: Passive = "rce",
        alpha: NonNegative = 1.0,
        beta: NonNegative = 1.0,
        gamma: NonNegative | None = None,
        q: PositiveFraction | None = None,
        log_zero: LogZero | None = None,
    ) -> None:
        """Store the options.

        Args:
            active: what learns: normalised cross entropy, focal loss or generalized cross entropy.
            passive: what resists: mean absolute error or reverse cross entropy.
            alpha: α, factor of the active loss; 10 for CIFAR-100.
            beta: β, factor of the passive loss; for CIFAR-100 0.1 with rce, 1 with mae.
            gamma: γ of the focal loss, which only nfl has; 0.5 if not given.
            q: of generalized cross entropy, which only ngce has; 0.7 if not given, 0.1 for
                CIFAR-10.
            log_zero: A, what stands for log 0 in rce, which alone has it; log 1e-4 if not given.
        """
        super().__init__()
        owners = {"gamma": (gamma, "nfl"), "q": (q, "ngce"), "log_zero": (log_zero, "rce")}
        for option, (value, owner) in owners.items():
            if value is not None and owner not in (active, passive):
                part = "passive" if owner == "rce" else "active"
                raise UsageError(
                    f"loss.{option} belongs to {owner}, and this pair is {active} and {passive}; "
                    f"leave it out, or set loss.{part}={owner}"
                )
        self.active, self.passive, self.alpha, self.beta = active, passive, alpha, beta
        self.gamma, self.q = 0.5 if gamma is None else gamma, q or 0.7
        self.log_zero = log_zero or LOG_ZERO

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,)."""
        return self.alpha * self._active(logits, labels) + self.beta * self._passive(logits, labels)

    def _active(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.active == "nce":
            return normalized_ce(logits, labels, reduction="none")
        if self.active == "nfl":
            return normalized_focal(logits, labels, gamma=self.gamma, reduction="none")
        return normalized_gce(logits, labels, q=self.q, reduction="none")

    def _passive(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.passive == "mae":
            return mae_loss(logits, labels, reduction="none")
        return rce_loss(logits, labels, log_zero=self.log_zero, reduction="none")
