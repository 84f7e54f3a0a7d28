"""Learners: what is trained. The trainer calls them and knows nothing of their method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from unswayed.learners.classifier import Classifier, Ensemble, Network
from unswayed.memory import KnownOnCPU
from unswayed.registry import Registry
from unswayed.types import Batch, Overview, Terms, ViewKind

__all__ = ["LEARNERS", "Classifier", "Ensemble", "Learner", "Network", "register"]


class Learner(KnownOnCPU, ABC):
    """A module whose forward turns a batch into named losses.

    `classifier` is what is evaluated, saved and shipped; everything else exists only while
    training. Anything that must survive an interruption is a parameter or a buffer.
    """

    classifier: Network
    views: Sequence[ViewKind] = ("weak",)
    """The views that a batch carries."""

    restart: float = 0.0
    """Share of the training after which it begins anew; 0 is never. See `Loss.restart`."""

    @abstractmethod
    def forward(self, batch: Batch) -> Terms:
        """Return the losses of one step."""

    def before_step(self, progress: float) -> None:
        """Called once a training step, before the forward."""

    def before_epoch(self, overview: Overview) -> None:
        """Called before every epoch, for learners that look at the whole training set."""

    def findings(self) -> dict[str, Any]:
        """Return what it has estimated, as plain values for the run's summary."""
        return {}


LEARNERS: Registry[Learner] = Registry("learner", __name__)
register = LEARNERS.register
