"""SGD whose steps for filters are orthogonal. Jordan et al., 2024, "Muon"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.optimizers import Group, register
from unswayed.optimizers.sgd import SGD
from unswayed.schedules import NonNegativeSchedule, PositiveSchedule
from unswayed.types import BelowOne, NonNegative, Positive

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic that brings singular values near one; fast rather than exact, as published."""

ITERATIONS = 3


@register("muon", paper="Jordan et al., 2024")
class Muon(SGD):
    """Orthogonal steps for the filters of convolutions, SGD for the rest: learns in few epochs."""

    def __init__(
        self,
        lr: Positive = 0.02,
        momentum: BelowOne = 0.9,
        nesterov: bool = False,
        weight_decay: NonNegative = 5e-4,
        decay_norms_and_biases: bool = True,
        bias_lr: PositiveSchedule = 1.0,
        filter_lr: NonNegativeSchedule = 0.12,
        filter_momentum: BelowOne = 0.6,
    ) -> None:
        """Store the options.

        Args:
            lr: learning rate of the rest, which the schedule multiplies.
            momentum: of the rest.
            nesterov: Nesterov's form of momentum, of the rest.
            weight_decay: of the rest; filters have none, since their norm is fixed.
            decay_norms_and_biases: whether weight decay applies to batch norms and biases.
            bias_lr: factor of the learning rate for norms and biases of the backbone. Their
                weight decay is divided by it, so that they shrink as quickly as the rest.
            filter_lr: learning rate of filters, about the angle of a step. A number follows the
                schedule of `lr`; a table is a schedule of its own.
            filter_momentum: of filters.
        """
        super().__init__(lr, momentum, nesterov, weight_decay, decay_norms_and_biases, bias_lr)
        self.filter_lr, self.filter_momentum = filter_lr, filter_momentum

    def build(self, net: nn.Module) -> torch.optim.Optimizer:
        """Return an SGD whose steps for filters are orthogonal."""
        groups = self.groups(net)
        return OrthogonalSGD(groups, self.lr, self.momentum, nesterov=self.nesterov)

    def kinds(self) -> dict[str, Group]:
        """Return the options of each kind of group, with filters as one more."""
        filters = {"filters": True, "filter_momentum": self.filter_momentum}
        return {**super().kinds(), "filters": filters}

    def kind(self, p: Tensor, *, inside: bool) -> str:
        """Return the kind of a parameter; `inside` if it belongs to a backbone."""
        return "filters" if p.ndim == 4 else super().kind(p, inside=inside)

    def set_rates(self, optimizer: torch.optim.Optimizer, rate: float, progress: float) -> None:
        """Set the learning rate of all groups, that of filters by their own number."""
        super().set_rates(optimizer, rate, progress)
        own = self.filter_lr
        for group in optimizer.param_groups:
            if group.get("filters"):
                group["lr"] = own(progress) if callable(own) else rate / self.lr * own


class OrthogonalSGD(torch.optim.SGD):
    """SGD, but groups marked `filters` make orthogonal steps.

    The momentum of a filter bank, as a matrix (out, in · height · width), is replaced by a matrix
    close to it with singular values about one: every direction moves, not only the few that
    dominate a gradient. The bank itself is kept at the norm √out, which the batch norm behind it
    does not notice, so that a learning rate means the same angle throughout.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Make a step; filters first, whose gradients are used up, then the rest by SGD."""
        for group in self.param_groups:
            if not group.get("filters"):
                continue
            for p in group["params"]:
                if p.grad is not None:
                    self._turn(p, p.grad, group["lr"], group["filter_momentum"])
                    p.grad = None
        return super().step(closure)

    def _turn(self, p: Tensor, gradient: Tensor, lr: float, momentum: float) -> None:
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(p)
        buffer = state["momentum_buffer"].mul_(momentum).add_(gradient)
        ahead = gradient.add(buffer, alpha=momentum)  # Nesterov
        p.mul_(len(p) ** 0.5 / p.norm().clamp_min(1e-12))
        p.sub_(orthogonal(ahead.flatten(1)).view_as(p), alpha=lr)


def orthogonal(matrix: Tensor) -> Tensor:
    """Return about the nearest matrix whose singular values are one (Newton and Schulz)."""
    x: Tensor = matrix / matrix.norm().clamp_min(1e-12)
    if wide := x.shape[0] > x.shape[1]:
        x = x.T
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if wide else x
