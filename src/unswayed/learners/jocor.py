"""JoCoR: two networks that must agree, on samples where both do. Wei et al., CVPR 2020."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.learners import Classifier, register
from unswayed.learners.rates import NoiseRate, RateOption
from unswayed.learners.two_networks import TwoNetworks, forget_rate, smallest
from unswayed.losses import Loss
from unswayed.types import Batch, Count, Fraction, Overview, Positive, Terms


@register("jocor", paper="Wei et al., CVPR 2020, eq. 1-4")
class JoCoR(TwoNetworks):
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
                "known" from the true labels, or "estimate" from the run itself.
            weight: λ, share of the agreement in the joint loss.
            gradual: epochs over which the share left out rises from 0.
            exponent: c, the share left out is noise_rate^c.
        """
        super().__init__(classifier, new_classifier, loss)
        self.rate = NoiseRate(noise_rate, known_rate)
        self.weight, self.gradual, self.exponent = weight, gradual, exponent

    def before_epoch(self, overview: Overview) -> None:
        """Estimate the noise rate where it was not given."""
        super().before_epoch(overview)
        self.rate.before_epoch(overview)

    def findings(self) -> dict[str, Any]:
        """Return the noise rate, if it was estimated."""
        return self.rate.findings()

    def forward(self, batch: Batch) -> Terms:
        """Return the mean joint loss over the samples that are kept."""
        logits: list[Tensor] = [net(batch.views.weak) for net in self.classifier.members]
        first, second = (
            loss(each, batch.labels, batch.index)
            for loss, each in zip(self.losses, logits, strict=True)
        )
        joint = (1 - self.weight) * (first + second) + self.weight * disagreement(*logits)
        f = forget_rate(self.rate.value, batch.epoch, self.gradual, self.exponent)
        total = joint[smallest(joint, 1 - f)].mean()
        both = torch.stack([first, second]).detach().mean(dim=0)
        parts = {"label": both.mean(), "noise_rate": self.rate.value, "left_out": torch.tensor(f)}
        return Terms(total, parts, both, torch.stack(logits).detach().mean(dim=0))


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """Return KL(p1‖p2) + KL(p2‖p1) of logits (B, K), as (B,)."""
    a, b = F.log_softmax(first, dim=1), F.log_softmax(second, dim=1)
    return ((a.exp() - b.exp()) * (a - b)).sum(dim=1)
