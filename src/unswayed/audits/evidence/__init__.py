"""What speaks for or against a label: each a small file, one interface.

An evidence says of every sample how far it believes in each class, as log-probabilities (b, K), a
chunk of rows at a time. So a million rows of a thousand classes never stand in memory at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.registry import Registry

CHUNK, KEPT = 2**22, 2**26
"""Numbers that are worked on at a time, and beliefs that are kept at the most."""


@dataclass(frozen=True)
class Inputs:
    """What an audit can look at."""

    labels: NDArray[np.int64]  # (N,) given
    num_classes: int
    logits: Tensor | None = None  # (N, K) of a network, any precision, up to a constant per row
    features: Tensor | None = None  # (N, F) of any encoder
    trained: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """(N,) rows whose labels the network was trained on."""

    cache: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False, compare=False)
    """What several evidences share: the nearest neighbours, which cost most."""

    def __len__(self) -> int:
        return len(self.labels)

    def chunks(self, width: int) -> Iterator[slice]:
        """Yield slices of rows that together hold so many numbers a row."""
        size = max(1, CHUNK // max(width, 1))
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    @property
    def given(self) -> Tensor:
        """The given labels as a tensor."""
        return torch.from_numpy(self.labels)


class Evidence(ABC):
    """A way to judge labels."""

    name: str = ""

    @abstractmethod
    def applies(self, inputs: Inputs) -> bool:
        """Return whether there is what it needs."""

    @abstractmethod
    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield log-probabilities (b, K), float32, of all rows in order."""


class Remembered(Evidence):
    """An evidence that is asked several times, and works once where its answers fit in memory."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.name = evidence, evidence.name
        self.chunks: list[Tensor] = []

    def applies(self, inputs: Inputs) -> bool:
        """Ask the evidence."""
        return self.evidence.applies(inputs)

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K), from memory if it can be."""
        if len(inputs) * inputs.num_classes > KEPT:
            yield from self.evidence.log_beliefs(inputs)
            return
        if not self.chunks:
            self.chunks = list(self.evidence.log_beliefs(inputs))
        yield from self.chunks


EVIDENCE: Registry[Evidence] = Registry("evidence", __name__)
register = EVIDENCE.register
