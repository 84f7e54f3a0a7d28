"""Optimizers: how gradients become steps. One is chosen by the section `[optimizer]`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.models import Backbone
from unswayed.registry import Registry
from unswayed.schedules import Scheduled, value_at

Group = dict[str, Any]


class Optimizer(ABC):
    """The options of an optimizer: it groups parameters and sets the rates of the groups.

    Norms and biases of a backbone are the group `fast` if `bias_lr` is not 1.
    """

    def __init__(
        self, lr: float, weight_decay: float, decay_norms_and_biases: bool, bias_lr: Scheduled
    ) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.decay_norms_and_biases, self.bias_lr = decay_norms_and_biases, bias_lr

    @abstractmethod
    def build(self, net: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer of a network's trainable parameters."""

    def groups(self, net: nn.Module) -> list[Group]:
        """Return the trainable parameters in groups that are treated alike."""
        backbones = (part for part in net.modules() if isinstance(part, Backbone))
        inside = {p for part in backbones for p in part.parameters()}
        found = self.kinds()
        for p in net.parameters():
            if p.requires_grad:
                group = found[self.kind(p, inside=p in inside)]
                group.setdefault("params", []).append(p)
        return [group for group in found.values() if "params" in group]

    def kinds(self) -> dict[str, Group]:
        """Return the options of each kind of group."""
        return {
            "weights": {"weight_decay": self.weight_decay},
            "biases": {"weight_decay": 0.0},
            "fast": {"weight_decay": 0.0, "fast": True},
        }

    def kind(self, p: Tensor, *, inside: bool) -> str:
        """Return the kind of a parameter; `inside` if it belongs to a backbone."""
        if p.ndim > 1:
            return "weights"
        if inside and self.bias_lr != 1:
            return "fast"
        return "weights" if self.decay_norms_and_biases else "biases"

    def set_rates(self, optimizer: torch.optim.Optimizer, rate: float, progress: float) -> None:
        """Set the learning rate of all groups, and what some have of their own."""
        for group in optimizer.param_groups:
            group["lr"] = rate
            if group.get("fast"):
                times = value_at(self.bias_lr, progress)
                group["lr"] = rate * times
                if self.decay_norms_and_biases:
                    group["weight_decay"] = self.weight_decay / times


OPTIMIZERS: Registry[Optimizer] = Registry("optimizer", __name__)
register = OPTIMIZERS.register
