"""Co-teaching: each network learns what its peer finds easy. Han et al., NeurIPS 2018."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from unswayed.learners import Classifier, register
from unswayed.learners.rates import NoiseRate, RateOption
from unswayed.learners.two_networks import SmallLoss, smallest
from unswayed.losses import Loss
from unswayed.types import Count, Positive


@register("coteaching", paper="Han et al., NeurIPS 2018, algorithm 1")
class CoTeaching(SmallLoss):
    """Two networks; each is trained on the samples of smallest loss of the other."""

    def __init__(
        self,
        classifier: Classifier,
        new_classifier: Callable[[], Classifier],
        loss: Loss,
        known_rate: float | None = None,
        noise_rate: RateOption = "estimate",
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
            gradual: epochs over which the share left out rises from 0.
            exponent: c, the share left out is noise_rate^c.
        """
        networks, rate = (classifier, new_classifier), NoiseRate(noise_rate, known_rate)
        super().__init__(networks, loss, rate, gradual, exponent)

    def objective(self, logits: Sequence[Tensor], losses: Sequence[Tensor], keep: float) -> Tensor:
        """Return the mean loss of each network over what the other one selected."""
        first, second = losses
        return first[smallest(second, keep)].mean() + second[smallest(first, keep)].mean()
