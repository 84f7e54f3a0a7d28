"""Record what every training sample did in an epoch, from the training's own forward pass.

The numbers belong to the view that carries the label, at the step in which the sample was trained
on. They cost only a copy. Finding wrong labels will read them.
"""

from __future__ import annotations

import torch
from torch import nn

from unswayed.memory import Memory
from unswayed.types import Batch, Records, Terms


class Recorder(nn.Module):
    """Collects the records of an epoch."""

    def __init__(self, num_samples: int, device: torch.device) -> None:
        super().__init__()
        for name in Records._fields:
            whole = name == "predicted"
            fill, dtype = (-1, torch.int32) if whole else (torch.nan, torch.float32)
            self.add_module(name, Memory(num_samples, fill=fill, dtype=dtype, device=device))

    def note(self, batch: Batch, terms: Terms) -> None:
        """Record a step."""
        logits = terms.logits.float()
        labels = batch.labels[:, None]
        given = logits.gather(1, labels).squeeze(1)
        best_other = logits.scatter(1, labels, -torch.inf).amax(dim=1)
        p = logits.softmax(dim=1)
        probability, predicted = p.max(dim=1)
        of_given = p.gather(1, labels).squeeze(1)
        noted = Records(terms.losses.float(), given - best_other, probability, of_given, predicted)
        for name, values in noted._asdict().items():
            self._memory(name)[batch.index] = values

    @property
    def records(self) -> Records:
        """The records so far."""
        return Records(*(self._memory(name).values for name in Records._fields))

    def _memory(self, name: str) -> Memory:
        memory = self.get_submodule(name)
        assert isinstance(memory, Memory)
        return memory
