"""How a learner's weights move: the optimizer, its learning rate, and clipped gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.learners import Learner
from unswayed.schedules import restart_epoch
from unswayed.training.optimizer import (
    learning_rate,
    make_optimizer,
    pack_state,
    set_rates,
    unpack_state,
)
from unswayed.training.settings import Settings


class Optimization:
    """The optimizer of a learner over a whole training."""

    def __init__(self, learner: Learner, settings: Settings, steps: int) -> None:
        if learner.restart and settings.epochs < 2:
            raise UsageError("this method begins anew halfway; set train.epochs=2 or more")
        self.learner, self.settings, self.steps = learner, settings, steps
        self.optimizer = make_optimizer(learner, settings)

    @property
    def _restart(self) -> int:
        """The epoch with which training begins anew; 0 if it never does."""
        return restart_epoch(self.learner.restart, self.settings.epochs)

    def rate(self, epoch: int, step: int) -> float:
        """Return the learning rate of a step."""
        first, last, restart = 0, self.settings.epochs, self._restart
        if restart:
            first, last = (0, restart) if epoch < restart else (restart, last)
        return learning_rate(self.settings, epoch - first, step, self.steps, last - first)

    def begin_epoch(self, epoch: int) -> None:
        """Forget the momentum where training begins anew."""
        if epoch == self._restart:
            self.optimizer.state.clear()

    def zero_grad(self) -> None:
        """Drop the gradients of the last step."""
        self.optimizer.zero_grad(set_to_none=True)

    def clip(self) -> Tensor:
        """Return the norm of all gradients together, which are clipped if they are to be."""
        parameters = [p for p in self.learner.parameters() if p.grad is not None]
        if self.settings.clip_norm:
            return torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip_norm)
        return torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])

    def step(self, epoch: int, step: int, progress: float) -> None:
        """Move the weights."""
        set_rates(self.optimizer, self.settings, self.rate(epoch, step), progress)
        self.optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Return what the next steps depend on."""
        return pack_state(self.optimizer)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `state` returned."""
        unpack_state(self.optimizer, tensors)
