"""Truncated generalized cross entropy. Zhang & Sabuncu, NeurIPS 2018, sec. 3.3."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.losses.best import Best
from unswayed.losses.gce import gce_loss
from unswayed.memory import Memory
from unswayed.types import BelowOne, Count, Fraction, Overview, PositiveFraction


@register("truncated_gce", paper="Zhang & Sabuncu, NeurIPS 2018, sec. 3.3")
class TruncatedGCE(Loss):
    """Generalized cross entropy on samples with p_y > k; the others, pruned, are a constant."""

    def __init__(
        self,
        classifier: nn.Module,
        num_samples: int,
        q: PositiveFraction = 0.7,
        k: BelowOne = 0.5,
        start: Fraction = 1 / 3,
        every: Count = 10,
    ) -> None:
        """Keep every sample, and a copy of the network.

        Args:
            classifier: the network, of which the best so far decides what is pruned.
            num_samples: N.
            q: between cross entropy (towards 0) and mean absolute error (1).
            k: a sample whose label is not more probable than this is pruned; 0 prunes nothing.
            start: share of the training that is done when samples are pruned first, never before
                the first epoch.
            every: epochs from one pruning to the next; a pruned sample may come back.
        """
        super().__init__()
        self.q, self.k, self.start, self.every = q, k, start, every
        self.best = Best(classifier)
        # v, which samples are learned from
        self.kept = Memory(num_samples, fill=True, dtype=torch.bool)

    @property
    def has_memory(self) -> bool:
        """Return True: what is pruned is a sample with its own label."""
        return True

    def before_epoch(self, overview: Overview) -> None:
        """Keep track of the best network, and at times prune by it."""
        self.best.offer(overview.network, _accuracy(overview))
        since = overview.epoch - max(1, overview.first_epoch(self.start))
        if since >= 0 and since % self.every == 0:
            rows = overview.rows
            self.kept[rows] = overview.of_given(self.best.network, rows) > self.k

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return v L_q(p_y) + (1 - v) L_q(k), (B,).

        Without an index, which only evaluation may leave out, nothing is pruned.
        """
        losses = gce_loss(logits, labels, q=self.q, reduction="none", min_probability=0)
        if index is None:
            if self.training:
                raise UsageError("truncated_gce needs the index of each sample, to know its mask")
            return losses
        truncated = (1 - self.k**self.q) / self.q
        return torch.where(self.kept[index], losses, truncated)


def _accuracy(overview: Overview) -> Tensor | None:
    """Return the accuracy on the noisy hold-out, if there is one."""
    if not len(overview.holdout):
        return None
    guess = overview.predicted(overview.network, overview.holdout)
    return (guess == overview.given[overview.holdout]).float().mean()
