"""How far a given label is trusted: one number per sample.

A loss takes logits and labels and answers (B,), like `F.cross_entropy(..., reduction="none")`;
only the learner averages, because the audit and small-loss selection need every number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from unswayed.memory import KnownOnCPU
from unswayed.registry import Registry
from unswayed.types import Overview


class Loss(KnownOnCPU, ABC):
    """A label loss. What it remembers is a buffer, and changes in training mode only."""

    run_seed: int = 0
    """Of what it draws, if it draws."""

    restart: float = 0.0
    """Share of the training after which it begins anew: fresh momentum, a new learning-rate
    schedule. 0 is never."""

    @property
    def has_memory(self) -> bool:
        """Whether it remembers samples, so that it can only be asked about their own labels."""
        return False

    @abstractmethod
    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        """Return one loss per sample.

        Args:
            logits: (B, K).
            labels: (B,) given labels.
            index: (B,) rows of the data set, for losses with a memory.
        """

    def before_epoch(self, overview: Overview) -> None:
        """Called before every epoch, for losses that look at the whole training set."""

    def findings(self) -> dict[str, Any]:
        """Return what it has estimated, as plain values for the run's summary."""
        return {}


LOSSES: Registry[Loss] = Registry("loss", __name__)
register = LOSSES.register
