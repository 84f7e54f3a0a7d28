"""What methods with two networks share: the second network, and a loss for each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.learners import Classifier, Ensemble, Learner
from unswayed.losses import Loss
from unswayed.randomness import torch_seed
from unswayed.types import Overview


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


def smallest(losses: Tensor, share: float) -> Tensor:
    """Return the positions of the smallest ⌊share · B⌋ losses, of at least one."""
    count = int(share * len(losses) + 1e-4)  # 0.4 · 10 is 4, also if 0.4 is a rounded number
    return losses.detach().argsort(stable=True)[: max(1, count)]


def forget_rate(rate: Tensor, epoch: int, gradual: int, exponent: float) -> float:
    """Return f(e), rising linearly over the first `gradual` epochs to rate^exponent.

    Han et al., NeurIPS 2018, sec. 3: R(e) = 1 - f(e) is the share of a batch that is kept.
    """
    return float(torch.clamp(rate, 0, 1) ** exponent) * min(epoch / gradual, 1.0)
