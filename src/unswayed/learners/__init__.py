"""Learners: what is trained. The trainer calls them and knows nothing of their method."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from unswayed.learners.classifier import Classifier
from unswayed.types import Batch, Terms

__all__ = ["Classifier", "Learner"]


class Learner(nn.Module, ABC):
    """A module whose forward turns a batch into named losses.

    `classifier` is what is evaluated, saved and shipped; everything else exists only while
    training. Anything that must survive an interruption is a parameter or a buffer.
    """

    classifier: Classifier
    strong_views: bool
    """Whether a batch must carry two strong views."""

    @abstractmethod
    def forward(self, batch: Batch) -> Terms:
        """Return the losses of one step."""

    def before_step(self, progress: float) -> None:
        """Called once a training step, before the forward."""
