"""What methods with two networks share: a second network, a loss for each, small-loss selection."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.learners import Classifier, Ensemble, Learner
from unswayed.learners.rates import NoiseRate
from unswayed.losses import Loss
from unswayed.randomness import torch_seed
from unswayed.types import Batch, Overview, Terms


class TwoNetworks(Learner):
    """Two classifiers with different initial weights; their average is shipped."""

    classifier: Ensemble

    def __init__(
        self, classifier: Classifier, new_classifier: Callable[[], Classifier], loss: Loss
    ) -> None:
        super().__init__()
        if loss.restart:
            raise UsageError(
                "two networks cannot use a loss that restarts the training; give it its matrix "
                "(loss.matrix=known, or the rows), or choose another loss"
            )
        self.classifier = Ensemble([classifier, new_classifier()])
        other = copy.deepcopy(loss)
        other.run_seed = torch_seed(loss.run_seed, "second network")
        self.losses = nn.ModuleList([loss, other])

    def before_epoch(self, overview: Overview) -> None:
        """Let each loss look at the training set with its own network."""
        for loss, net in zip(self.losses, self.classifier.members, strict=True):
            assert isinstance(loss, Loss)
            loss.before_epoch(replace(overview, network=net))


class SmallLoss(TwoNetworks):
    """Two networks that leave the samples of large loss out, as many as labels are wrong."""

    def __init__(
        self,
        networks: tuple[Classifier, Callable[[], Classifier]],
        loss: Loss,
        rate: NoiseRate,
        gradual: int,
        exponent: float,
    ) -> None:
        super().__init__(*networks, loss)
        self.rate, self.gradual, self.exponent = rate, gradual, exponent

    def before_epoch(self, overview: Overview) -> None:
        """Estimate the noise rate where it was not given."""
        super().before_epoch(overview)
        self.rate.before_epoch(overview)

    def findings(self) -> dict[str, Any]:
        """Return the noise rate, if it was estimated."""
        return self.rate.findings()

    @abstractmethod
    def objective(self, logits: Sequence[Tensor], losses: Sequence[Tensor], keep: float) -> Tensor:
        """Return what is minimised.

        Args:
            logits: (B, K) of each network.
            losses: (B,) of each network.
            keep: R(e), the share of the batch that is kept.
        """

    def forward(self, batch: Batch) -> Terms:
        """Return the objective over the samples that are kept, and records of both networks."""
        logits: list[Tensor] = [net(batch.views.weak[0]) for net in self.classifier.members]
        losses: list[Tensor] = [
            loss(each, batch.labels, batch.index)
            for loss, each in zip(self.losses, logits, strict=True)
        ]
        f = forget_rate(self.rate.value, batch.epoch, self.gradual, self.exponent)
        total = self.objective(logits, losses, 1 - f)
        both = torch.stack(losses).detach().mean(dim=0)
        parts = {"label": both.mean(), "noise_rate": self.rate.value, "left_out": torch.tensor(f)}
        return Terms(total, parts, both, torch.stack(logits).detach().mean(dim=0))


def smallest(losses: Tensor, share: float) -> Tensor:
    """Return the positions of the smallest ⌊share · B⌋ losses, of at least one."""
    count = int(share * len(losses) + 1e-4)  # 0.4 · 10 is 4, also if 0.4 is a rounded number
    return losses.detach().argsort(stable=True)[: max(1, count)]


def forget_rate(rate: Tensor, epoch: int, gradual: int, exponent: float) -> float:
    """Return f(e), rising linearly over the first `gradual` epochs to rate^exponent.

    Han et al., NeurIPS 2018, sec. 3: R(e) = 1 - f(e) is the share of a batch that is kept.
    """
    return float(torch.clamp(rate, 0, 1) ** exponent) * min(epoch / gradual, 1.0)
