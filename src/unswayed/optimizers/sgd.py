"""Stochastic gradient descent with momentum."""

from __future__ import annotations

import torch
from torch import nn

from unswayed.errors import UsageError
from unswayed.optimizers import Optimizer, register
from unswayed.schedules import PositiveSchedule
from unswayed.types import BelowOne, NonNegative, Positive


@register("sgd")
class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(
        self,
        lr: Positive = 0.02,
        momentum: BelowOne = 0.9,
        nesterov: bool = False,
        weight_decay: NonNegative = 5e-4,
        decay_norms_and_biases: bool = True,
        bias_lr: PositiveSchedule = 1.0,
    ) -> None:
        """Store the options.

        Args:
            lr: learning rate, which the schedule multiplies.
            momentum: share of the last step that is added to the next one.
            nesterov: Nesterov's form of momentum.
            weight_decay: on every parameter, as published.
            decay_norms_and_biases: whether weight decay applies to batch norms and biases.
            bias_lr: factor of the learning rate for norms and biases of the backbone. Their
                weight decay is divided by it, so that they shrink as quickly as the rest.
        """
        super().__init__(lr, weight_decay, decay_norms_and_biases, bias_lr)
        if nesterov and not momentum:
            raise UsageError("optimizer.nesterov needs optimizer.momentum above 0")
        self.momentum, self.nesterov = momentum, nesterov

    def build(self, net: nn.Module) -> torch.optim.Optimizer:
        """Return PyTorch's SGD."""
        groups = self.groups(net)
        return torch.optim.SGD(groups, self.lr, self.momentum, nesterov=self.nesterov)
