"""Batch norm over the whole batch, when several processes share it.

PyTorch's SyncBatchNorm refuses tensors on a CPU. This one serves every device, and keeps names and
weights of the norm that it replaces.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn.modules.batchnorm import _BatchNorm

from unswayed import processes


def share_norms(net: nn.Module) -> None:
    """Let all batch norms of a network see the rows of all processes.

    The class is changed in place: a norm may belong to several parents, and optimizers and moving
    averages hold its parameters already.
    """
    for module in net.modules():
        if type(module) in _SHARED:
            module.__class__ = _SHARED[type(module)]


class _Shared(_BatchNorm):
    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and processes.is_sharing()):
            return super().forward(x)
        y, mean, var, rows = _Normalise.apply(x, self.weight, self.bias, self.eps)
        if self.running_mean is not None and self.running_var is not None:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            momentum = self.momentum
            if momentum is None:
                momentum = 1 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean.to(self.running_mean), momentum)
            unbiased = var * (rows / (rows - 1))
            self.running_var.lerp_(unbiased.to(self.running_var), momentum)
        return torch.as_tensor(y)


class _Shared1d(_Shared, nn.BatchNorm1d):
    pass


class _Shared2d(_Shared, nn.BatchNorm2d):
    pass


_SHARED: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm1d: _Shared1d,
    nn.BatchNorm2d: _Shared2d,
}


class _Normalise(torch.autograd.Function):
    """(x - mean) / √(var + ε) · w + b, with the moments of all processes' rows."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        exact = x.double() if x.dtype == torch.float64 else x.float()
        dims = [0, *range(2, x.dim())]
        rows, mean, var = _moments(exact, dims)
        centred = exact - _channels(mean, x)
        scale = (var + eps).rsqrt()
        normal = centred * _channels(scale, x)
        y = normal
        if weight is not None:
            y = y * _channels(weight, x)
        if bias is not None:
            y = y + _channels(bias, x)
        ctx.save_for_backward(normal, scale, rows, *([] if weight is None else [weight]))
        ctx.has_bias = bias is not None  # type: ignore[attr-defined]
        ctx.mark_non_differentiable(mean, var, rows)
        return y.to(x.dtype), mean, var, rows

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        normal, scale, rows, *rest = ctx.saved_tensors  # type: ignore[attr-defined]
        weight = rest[0] if rest else None
        dims = [0, *range(2, grad.dim())]
        given = grad.to(normal.dtype)
        to_weight, to_bias = (given * normal).sum(dims), given.sum(dims)
        back = given if weight is None else given * _channels(weight, grad)
        both = torch.stack([back.sum(dims), (back * normal).sum(dims)])
        shift, slope = processes.summed(both) / rows
        to_x = back - _channels(shift, grad) - normal * _channels(slope, grad)
        to_x = (to_x * _channels(scale, grad)).to(grad.dtype)
        return to_x, to_weight if rest else None, to_bias if ctx.has_bias else None, None  # type: ignore[attr-defined]


def _moments(x: Tensor, dims: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return how many numbers a channel has in all processes, their means and their variances.

    From the moments of each process, in one message; sums of squares would lose digits.
    """
    var, mean = torch.var_mean(x, dims, correction=0)
    own = torch.cat([x.new_full((1,), x.numel() / x.shape[1]), mean, var])
    parts = processes.gathered(own[None], [1] * processes.count())  # (processes, 1 + 2C)
    rows, means, variances = parts[:, :1], *parts[:, 1:].chunk(2, dim=1)
    share = rows / rows.sum()
    mean = (share * means).sum(dim=0)
    var = (share * (variances + (means - mean).square())).sum(dim=0)
    return rows.sum(), mean, var


def _channels(of: Tensor, like: Tensor) -> Tensor:
    return of.view(1, -1, *[1] * (like.dim() - 2))
