"""Which pairs attract, and how: the term that λ weighs.

A regularizer answers two questions. `pair_weights`: how much does row i want to be like key j, a
row-stochastic (B, M) matrix. `forward`: what does that cost, given the embeddings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unswayed.registry import Registry
from unswayed.regularizers.pairs import Clamp, Form, PairWeight, contrast, normalised_weights
from unswayed.schedules import Scheduled
from unswayed.types import Beliefs, Pairs

__all__ = [
    "REGULARIZERS",
    "Clamp",
    "Form",
    "PairWeight",
    "Regularizer",
    "contrast",
    "normalised_weights",
    "register",
]


class Regularizer(nn.Module, ABC):
    """A contrastive term over the pairs of a batch."""

    form: Form = "log"
    clamp: Clamp = "similarity"

    def __init__(self, weight: Scheduled) -> None:
        super().__init__()
        self.weight = weight

    @abstractmethod
    def pair_weights(
        self, rows: Beliefs, keys: Beliefs, positive: Tensor, progress: float
    ) -> Tensor:
        """Return W, (B, M), whose rows sum to one; zero where a pair is not selected.

        Args:
            rows: what is believed of the B samples that are attracted.
            keys: the same of the M samples that attract them.
            positive: (B,) the key of each row that is its own other view.
            progress: share of the training that is done.
        """

    def forward(self, directions: Sequence[Pairs], weights: Tensor, positive: Tensor) -> Tensor:
        """Return the mean of the term over the directions, a scalar."""
        costs = [
            contrast(query, key, weights, positive, form=self.form, clamp=self.clamp)
            for query, key in directions
        ]
        return torch.stack(costs).mean()


REGULARIZERS: Registry[Regularizer | None] = Registry("regularizer", __name__)
register = REGULARIZERS.register
