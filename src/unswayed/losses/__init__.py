"""How far a given label is trusted: one number per sample.

A loss takes logits and labels and answers (B,), like `F.cross_entropy(..., reduction="none")`;
only the learner averages, because the audit and small-loss selection need every number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from unswayed.registry import Registry


class Loss(nn.Module, ABC):
    """A label loss."""

    @abstractmethod
    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return one loss per sample.

        Args:
            logits: (B, K).
            labels: (B,) given labels.
            index: (B,) rows of the data set, for losses with a memory.
        """


LOSSES: Registry[Loss] = Registry("loss", __name__)
register = LOSSES.register
