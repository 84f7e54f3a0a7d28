"""Stochastic label noise: labels are shaken anew at every step. Chen et al., ICLR 2021."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.device import sent
from unswayed.losses import Loss, register
from unswayed.randomness import normal
from unswayed.types import Fraction, NonNegative, Overview


@register("sln", paper="Chen et al., ICLR 2021")
class SLN(Loss):
    """Cross entropy against e_y + σ n, with n standard normal, new at each step and sample."""

    step: Tensor
    shaking: Tensor
    on_cpu = ("step", "shaking")

    def __init__(self, run_seed: int = 0, sigma: NonNegative = 1.0, until: Fraction = 1.0) -> None:
        """Store the options.

        Args:
            run_seed: of the run.
            sigma: σ; 1 for symmetric noise on CIFAR-10, 0.5 for asymmetric, 0.2 on CIFAR-100.
            until: share of the training after which σ is 0.
        """
        super().__init__()
        self.run_seed, self.sigma, self.until = run_seed, sigma, until
        self.register_buffer("step", torch.tensor(0))
        self.register_buffer("shaking", torch.tensor(True))

    def before_epoch(self, overview: Overview) -> None:
        """Cease to shake labels once the end is reached."""
        self.shaking.fill_(overview.epoch < overview.first_epoch(self.until))

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,): shaken in training mode, plain cross entropy in evaluation mode."""
        if not self.training:
            return F.cross_entropy(logits, labels, reduction="none")
        targets = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
        if self.shaking:
            targets = targets + self.sigma * self._noise(logits, index)
        self.step += 1
        return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1)

    def _noise(self, logits: Tensor, index: Tensor | None) -> Tensor:
        """Return n (B, K) of this step; without an index, by the place in the batch."""
        batch, classes = logits.shape
        rows = np.arange(batch) if index is None else index.cpu().numpy()
        n = normal(self.run_seed, "sln", self.step.item(), rows[:, None], np.arange(classes))
        return sent(torch.from_numpy(n).to(logits.dtype), logits.device)
