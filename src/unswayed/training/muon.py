"""SGD whose steps for filters are orthogonal. Jordan et al., 2024, "Muon"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic that brings singular values near one; fast rather than exact, as published."""

ITERATIONS = 3


class Muon(torch.optim.SGD):
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
