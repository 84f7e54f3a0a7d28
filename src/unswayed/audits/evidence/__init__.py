"""What speaks for or against a label: each a small file, one interface.

An evidence says of every sample how far it believes in each class, as log-probabilities (b, K), a
chunk of rows at a time. So a million rows of a thousand classes never stand in memory at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.randomness import Bits, bits
from unswayed.registry import Registry
from unswayed.types import Records

ROWS = 1024
"""Rows of a chunk. Fixed, so that sums are made in the same order on every machine."""

KEPT = 2**26
"""Beliefs that are kept in memory at the most."""


@dataclass(frozen=True)
class Inputs:
    """What an audit can look at."""

    labels: NDArray[np.int64]  # (N,) given
    num_classes: int
    logits: Tensor | None = None  # (N, K) of a network, any precision, up to a constant per row
    features: Tensor | None = None  # (N, F) of any encoder
    trained: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """(N,) rows whose labels the network was trained on."""

    records: Records | None = None  # (epochs, N) each, of the training
    cache: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False, compare=False)
    """What several evidences share: the nearest neighbours, which cost most."""

    def __len__(self) -> int:
        return len(self.labels)

    def chunks(self) -> Iterator[slice]:
        """Yield slices of `ROWS` rows; the last may be shorter."""
        for start in range(0, len(self), ROWS):
            yield slice(start, min(start + ROWS, len(self)))

    @property
    def given(self) -> Tensor:
        """The given labels as a tensor."""
        return torch.from_numpy(self.labels)

    @cached_property
    def keys(self) -> Bits:
        """64 bits (N,) that stand for what a sample looks like, not for its place or its label.

        Draws that hang on them do not change when rows are ordered otherwise.
        """
        shown = self.features if self.features is not None else self.logits
        assert shown is not None
        weights = bits(0, "audit key", np.arange(shown.shape[1])) | np.uint64(1)
        found = np.empty(len(self), dtype=np.uint64)
        for rows in self.chunks():
            # Adding zero makes one zero of two; equal numbers then have equal bits.
            words = (shown[rows].float() + 0.0).numpy().view(np.uint32).astype(np.uint64)
            found[rows] = bits(0, "audit row", words * weights + weights).sum(axis=1)
        return found

    def select(self, rows: NDArray[np.int64]) -> Inputs:
        """Return these rows alone."""
        at = torch.from_numpy(rows)

        def of(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[at]

        records = self.records and Records(*(each[:, at] for each in self.records))
        return replace(
            self,
            labels=self.labels[rows],
            logits=of(self.logits),
            features=of(self.features),
            trained=self.trained[rows],
            records=records,
            cache={},
        )


class Evidence(ABC):
    """A way to judge labels."""

    name: str = ""

    @abstractmethod
    def applies(self, inputs: Inputs) -> bool:
        """Return whether there is what it needs."""

    @abstractmethod
    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield log-probabilities (b, K), float32, of all chunks of rows in order."""


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
