"""Adam. Kingma & Ba, ICLR 2015."""

from __future__ import annotations

import torch
from torch import nn

from unswayed.optimizers import Optimizer, register
from unswayed.schedules import PositiveSchedule
from unswayed.types import BelowOne, NonNegative, Positive


@register("adam", paper="Kingma & Ba, ICLR 2015")
class Adam(Optimizer):
    """Adam, as some published codes use it."""

    def __init__(
        self,
        lr: Positive = 0.001,
        betas: tuple[BelowOne, BelowOne] = (0.9, 0.999),
        weight_decay: NonNegative = 5e-4,
        decay_norms_and_biases: bool = True,
        bias_lr: PositiveSchedule = 1.0,
    ) -> None:
        """Store the options.

        Args:
            lr: learning rate, which the schedule multiplies.
            betas: decay rates of the averages of gradients and of their squares.
            weight_decay: on every parameter; it is added to the gradient.
            decay_norms_and_biases: whether weight decay applies to batch norms and biases.
            bias_lr: factor of the learning rate for norms and biases of the backbone. Their
                weight decay is divided by it.
        """
        super().__init__(lr, weight_decay, decay_norms_and_biases, bias_lr)
        self.betas = betas

    def build(self, net: nn.Module) -> torch.optim.Optimizer:
        """Return PyTorch's Adam."""
        return torch.optim.Adam(self.groups(net), self.lr, self.betas)
