"""Early-learning regularization. Liu et al., NeurIPS 2020, eq. 6."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from unswayed.errors import UsageError
from unswayed.losses import Loss, register
from unswayed.memory import Memory
from unswayed.types import BelowOne, NonNegative

EPS = 1e-4


@register("elr", paper="Liu et al., NeurIPS 2020, eq. 6")
class ELR(Loss):
    """CE + λ log(1 - <t, p>): stay close to what was predicted of each sample early on."""

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        beta: BelowOne = 0.7,
        weight: NonNegative = 3.0,
    ) -> None:
        """Begin with empty targets.

        Args:
            num_samples: N.
            num_classes: K.
            beta: β, share of a target that stays each time its sample is seen; 0.9 for
                asymmetric noise and for CIFAR-100.
            weight: λ of the regularizer; 1 for asymmetric noise, 7 for CIFAR-100.
        """
        super().__init__()
        self.beta, self.weight = beta, weight
        self.targets = Memory(num_samples, num_classes)  # t

    @property
    def has_memory(self) -> bool:
        """Return True: every sample has its target."""
        return True

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return (B,), in training mode after the targets have moved.

        Without an index, which only evaluation may leave out, it is cross entropy.
        """
        ce = F.cross_entropy(logits, labels, reduction="none")
        if index is None:
            if self.training:
                raise UsageError("elr needs the index of each sample, to find its target")
            return ce
        if self.training:
            self._remember(logits.detach(), index)
        t = self.targets[index].to(logits.dtype)
        aligned = (t * logits.softmax(dim=1)).sum(dim=1)  # (B,)
        return ce + self.weight * (1 - aligned).clamp_min(EPS).log()

    def _remember(self, logits: Tensor, index: Tensor) -> None:
        """Move the targets of a batch, t ← β t + (1 - β) p."""
        p = logits.to(self.targets.values.dtype).softmax(dim=1).clamp(EPS, 1 - EPS)
        p = p / p.sum(dim=1, keepdim=True)
        self.targets[index] = self.beta * self.targets[index] + (1 - self.beta) * p
