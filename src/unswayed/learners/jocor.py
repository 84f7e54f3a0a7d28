"""JoCoR: two networks that must agree, on samples where both do. Wei et al., CVPR 2020."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor

from unswayed.learners import Classifier, register
from unswayed.learners.rates import NoiseRate, RateOption
from unswayed.learners.two_networks import SmallLoss, smallest
from unswayed.losses import Loss
from unswayed.types import Count, Fraction, Positive


@register("jocor", paper="Wei et al., CVPR 2020, eq. 1-4")
class JoCoR(SmallLoss):
    """Joint loss (1-λ)(ℓ1 + ℓ2) + λ (KL(p1‖p2) + KL(p2‖p1)) on the samples where it is small."""

    def __init__(
        self,
        classifier: Classifier,
        new_classifier: Callable[[], Classifier],
        loss: Loss,
        known_rate: float | None = None,
        noise_rate: RateOption = "estimate",
        weight: Fraction = 0.9,
        gradual: Count = 10,
        exponent: Positive = 1.0,
    ) -> None:
        """Build the second network.

        Args:
            classifier: the first network.
            new_classifier: makes the second.
            loss: of the given labels.
            known_rate: the realised noise rate, where true labels are known.
            noise_rate: share of wrong labels, the most that is left out of a batch: a number,
                "known" from the true labels, or "estimate" from the run itself, which is too high
                while the networks are weak.
            weight: λ, share of the agreement in the joint loss.
            gradual: epochs over which the share left out rises from 0.
            exponent: c, the share left out is noise_rate^c.
        """
        networks, rate = (classifier, new_classifier), NoiseRate(noise_rate, known_rate)
        super().__init__(networks, loss, rate, gradual, exponent)
        self.weight = weight

    def objective(self, logits: Sequence[Tensor], losses: Sequence[Tensor], keep: float) -> Tensor:
        """Return the mean joint loss over the samples where it is small."""
        joint = (1 - self.weight) * (losses[0] + losses[1]) + self.weight * disagreement(*logits)
        return joint[smallest(joint, keep)].mean()


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """Return KL(p1‖p2) + KL(p2‖p1) of logits (B, K), as (B,)."""
    a, b = F.log_softmax(first, dim=1), F.log_softmax(second, dim=1)
    return ((a.exp() - b.exp()) * (a - b)).sum(dim=1)
