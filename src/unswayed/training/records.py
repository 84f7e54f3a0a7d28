"""What every training sample did in an epoch, taken from the training forward itself.

The numbers belong to the weak view at the moment the sample was trained on. They cost nothing
beyond a copy, and are what finding wrong labels will read.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unswayed.types import Batch, Terms


class Records(NamedTuple):
    """One epoch of all N samples; NaN and -1 where a sample was not trained on."""

    loss: Tensor  # (N,) float32, label loss
    margin: Tensor  # (N,) float32, logit of the given label less the largest other one
    probability: Tensor  # (N,) float32, of the predicted class
    predicted: Tensor  # (N,) int32

    @classmethod
    def empty(cls, num_samples: int, device: torch.device) -> Records:
        """Return records of nothing."""
        nan = torch.full((3, num_samples), torch.nan, device=device)
        unseen = torch.full((num_samples,), -1, dtype=torch.int32, device=device)
        return cls(nan[0].clone(), nan[1].clone(), nan[2].clone(), unseen)

    def note(self, batch: Batch, terms: Terms) -> None:
        """Write down a step."""
        logits = terms.logits.float()
        labels = batch.labels[:, None]
        given = logits.gather(1, labels).squeeze(1)
        best_other = logits.scatter(1, labels, -torch.inf).amax(dim=1)
        probability, predicted = logits.softmax(dim=1).max(dim=1)
        self.loss[batch.index] = terms.losses.float()
        self.margin[batch.index] = given - best_other
        self.probability[batch.index] = probability
        self.predicted[batch.index] = predicted.to(torch.int32)
