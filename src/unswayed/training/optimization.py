"""The optimizer of a training, with learning rate and clipping."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.learners import Learner
from unswayed.optimizers import Optimizer
from unswayed.schedules import Schedule, extremes, restart_epoch
from unswayed.training.settings import Settings


class Optimization:
    """The optimizer of a learner, its learning rate over the training, and its state.

    A learner that restarts has two parts of training. Each has its own schedule and warm-up.
    """

    def __init__(
        self,
        learner: Learner,
        optimizer: Optimizer,
        schedule: Schedule,
        settings: Settings,
        steps: int,
    ) -> None:
        """Build the optimizer.

        Args:
            learner: what is trained, on its device.
            optimizer: which optimizer, and its options.
            schedule: what multiplies the learning rate.
            settings: epochs, warm-up and clipping.
            steps: in an epoch.
        """
        if learner.restart and settings.epochs < 2:
            raise UsageError("this method begins anew halfway; set train.epochs=2 or more")
        if extremes(schedule)[0] < 0:
            raise UsageError("schedule: a learning rate must be at least 0 throughout")
        self.learner, self.options, self.schedule = learner, optimizer, schedule
        self.settings, self.steps = settings, steps
        self.warmup = min(settings.warmup_epochs, settings.epochs / 2)
        self.optimizer = optimizer.build(learner)

    def rate(self, epoch: int, step: int) -> float:
        """Return the learning rate of a step; both numbers count from 0.

        A warm-up rises every step, whatever `train.schedule_unit` says.
        """
        first, last = self._part(epoch)
        position = epoch - first + step / self.steps
        if position < self.warmup:
            return self.options.lr * (position + 1 / self.steps) / self.warmup
        if self.settings.schedule_unit == "epoch":
            position = math.floor(position)
        progress = max(position - self.warmup, 0) / max(last - first - self.warmup, 1)
        return self.options.lr * self.schedule(progress)

    def _part(self, epoch: int) -> tuple[int, int]:
        """Return the first epoch of this epoch's part, and the first epoch after the part."""
        epochs, restart = self.settings.epochs, self._restart
        return (0, restart or epochs) if epoch < restart or not restart else (restart, epochs)

    @property
    def _restart(self) -> int:
        """The epoch at which training restarts; 0 if it never does."""
        return restart_epoch(self.learner.restart, self.settings.epochs)

    def begin_epoch(self, epoch: int) -> None:
        """Reset the optimizer if training restarts at this epoch."""
        if epoch == self._restart:
            self.optimizer.state.clear()

    def zero_grad(self) -> None:
        """Remove all gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def clip(self) -> Tensor:
        """Clip gradients if asked to, and return the norm of all gradients before that."""
        parameters = [p for p in self.learner.parameters() if p.grad is not None]
        if self.settings.clip_norm:
            return torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip_norm)
        return torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])

    def step(self, epoch: int, step: int) -> None:
        """Make a step; both numbers count from 0."""
        self.options.set_rates(self.optimizer, self.rate(epoch, step), self.progress(epoch, step))
        self.optimizer.step()

    def progress(self, epoch: int, step: int) -> float:
        """Return the share of this part of the training that is done, for rates with a schedule."""
        first, last = self._part(epoch)
        whole = self.settings.schedule_unit == "epoch"
        position = epoch - first + (0 if whole else step / self.steps)
        return position / (last - first)

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def state(self) -> dict[str, Tensor]:
        """Return the optimizer's tensors by the number of the parameter."""
        return {
            f"{number}.{name}": value
            for number, parameter in enumerate(self._parameters())
            for name, value in self.optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `state` returned."""
        parameters = self._parameters()
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            parameter = parameters[int(number)]
            # Keep the layout of the parameter. What is no tensor of its shape, such as Adam's
            # count of steps, stays on the CPU, where PyTorch wants it.
            like = parameter if value.shape == parameter.shape else value
            self.optimizer.state[parameter][name] = torch.empty_like(like).copy_(value)
