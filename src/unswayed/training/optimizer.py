"""The optimizer and its learning rate."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.models import Backbone
from unswayed.schedules import Cosine, value_at
from unswayed.training.muon import Muon
from unswayed.training.settings import Settings


def make_optimizer(net: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Return the optimizer of the trainable parameters, in groups that are treated alike."""
    inside = {p for part in net.modules() if isinstance(part, Backbone) for p in part.parameters()}
    groups: dict[str, dict[str, Any]] = {
        "weights": {"weight_decay": settings.weight_decay},
        "biases": {"weight_decay": 0.0},
        "fast": {"weight_decay": 0.0, "fast": True},
        "filters": {"filters": True, "filter_momentum": settings.filter_momentum},
    }
    for p in net.parameters():
        if p.requires_grad:
            group = groups[_kind(p, p in inside, settings)]
            group.setdefault("params", []).append(p)
    used = [group for group in groups.values() if "params" in group]
    if settings.optimizer == "adam":
        return torch.optim.Adam(used, lr=settings.lr, betas=(settings.momentum, 0.999))
    kind = Muon if settings.optimizer == "muon" else torch.optim.SGD
    return kind(used, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov)


def _kind(p: Tensor, inside: bool, settings: Settings) -> str:
    """Return the group of a parameter; `inside` if it belongs to a backbone."""
    if settings.optimizer == "muon" and p.ndim == 4:
        return "filters"
    if p.ndim > 1:
        return "weights"
    if inside and settings.bias_lr != 1:
        return "fast"
    return "weights" if settings.decay_norms_and_biases else "biases"


def set_rates(
    optimizer: torch.optim.Optimizer, settings: Settings, rate: float, progress: float
) -> None:
    """Set the learning rate of all parameters, and what some have of their own."""
    for group in optimizer.param_groups:
        group["lr"] = rate
        if group.get("filters"):
            own = settings.filter_lr
            group["lr"] = own(progress) if callable(own) else rate / settings.lr * own
        if group.get("fast"):
            times = value_at(settings.bias_lr, progress)
            group["lr"] = rate * times
            if settings.decay_norms_and_biases:
                group["weight_decay"] = settings.weight_decay / times


def learning_rate(
    settings: Settings, epoch: int, step: int, steps: int, epochs: int | None = None
) -> float:
    """Return the learning rate of step `step` (from 0) of `steps` in `epoch` (from 0).

    Args:
        settings: peak, schedule and warm-up.
        epoch: from 0.
        step: from 0.
        steps: in an epoch.
        epochs: how long the schedule is, if it is not the whole training.
    """
    epochs = settings.epochs if epochs is None else epochs
    position = epoch + step / steps
    if position < settings.warmup_epochs:
        return settings.lr * (position + 1 / steps) / settings.warmup_epochs
    if settings.schedule == "constant":
        return settings.lr
    if settings.schedule == "steps":
        drops = [max(share > 0, round(share * epochs)) for share in settings.milestones]
        passed = sum(epoch >= drop for drop in drops)
        return settings.lr * settings.gamma**passed
    if settings.schedule_unit == "epoch":
        position = math.floor(position)
    if settings.schedule == "triangle":
        first, last = settings.ends
        return settings.lr * _triangle(position / epochs, first, settings.peak, last)
    span = max(epochs - settings.warmup_epochs, 1)
    return Cosine(settings.lr, 0.0)(max(position - settings.warmup_epochs, 0) / span)


def _triangle(progress: float, first: float, peak: float, last: float) -> float:
    """Return the height of a triangle that is 1 high at progress `peak`."""
    if progress < peak:
        return first + (1 - first) * progress / peak
    return last + (1 - last) * (1 - progress) / max(1 - peak, 1e-9)


def pack_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's tensors by parameter number; the rest follows from the settings."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {
        f"{number}.{name}": value
        for number, parameter in enumerate(parameters)
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def unpack_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `pack_state` returned."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        parameter = parameters[int(number)]
        # Keep the layout of the parameter; what is no tensor of its shape, Adam's count of steps,
        # stays on the CPU, where PyTorch wants it.
        like = parameter if value.shape == parameter.shape else value
        optimizer.state[parameter][name] = torch.empty_like(like).copy_(value)
