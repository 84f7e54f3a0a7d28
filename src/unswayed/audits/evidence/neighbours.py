"""The labels of the nearest neighbours. Zhu et al., ICML 2022, "SimiFeat".

A sample's own label has no say, so nothing can be memorised. Works with features of any encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Ge, Le
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register
from unswayed.data.progress import tell
from unswayed.randomness import permutation
from unswayed.types import Positive

Neighbour = Annotated[int, Ge(1), Le(20)]
BANK, BLOCK = 2**16, 512
"""Rows that others are compared with at the most, and rows that are compared at a time."""

MOST, LEAST = 20, 3
"""Neighbours that are looked up, and that have a vote at the least."""


def bank_of(inputs: Inputs) -> Tensor:
    """Return rows that stand for all: all of them if they are few, else an even draw."""
    if len(inputs) <= BANK:
        return torch.arange(len(inputs))
    order = permutation(0, "audit bank", inputs.keys)
    return torch.from_numpy(np.sort(order[:BANK]))


def nearest(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return rows (N, MOST) and cosine similarities (N, MOST) of the nearest other samples."""
    if "nearest" not in inputs.cache:
        assert inputs.features is not None
        bank = bank_of(inputs)
        found = search(inputs.features, inputs.features[bank], MOST + 1, "comparing samples")
        inputs.cache["nearest"] = without_oneself(bank[found[0].long()], found[1])
    return inputs.cache["nearest"]


def search(queries: Tensor, keys: Tensor, k: int, what: str) -> tuple[Tensor, Tensor]:
    """Return places (n, k) of the most similar keys, and their cosine similarities (n, k)."""
    keys = F.normalize(keys.float(), dim=1)
    k = min(k, len(keys))
    places = torch.empty(len(queries), k, dtype=torch.int32)
    values = torch.empty(len(queries), k)
    space = torch.empty(min(BLOCK, len(queries)), len(keys))  # used again: fresh memory is slow
    for start in range(0, len(queries), BLOCK):
        rows = slice(start, min(start + BLOCK, len(queries)))
        block = F.normalize(queries[rows].float(), dim=1)
        similarity = torch.mm(block, keys.T, out=space[: len(block)])
        values[rows], found = similarity.topk(k, dim=1)
        places[rows] = found.to(torch.int32)
        tell(what, start, len(queries))
    return places, values


def without_oneself(rows: Tensor, similarity: Tensor) -> tuple[Tensor, Tensor]:
    """Drop each sample from its own neighbours; whoever is not among them drops the last one."""
    own = rows == torch.arange(len(rows))[:, None]
    own[~own.any(dim=1), -1] = True
    shape = (len(rows), rows.shape[1] - 1)
    return rows[~own].view(shape).to(torch.int32), similarity[~own].view(shape)


@register("neighbours", paper="Zhu et al., ICML 2022")
class Neighbours(Evidence):
    """The share of each label among the nearest neighbours in feature space."""

    name = "neighbours"

    def __init__(self, k: Neighbour = 20, prior: Positive = 0.5) -> None:
        """Store the options.

        Args:
            k: how many neighbours have a vote.
            prior: votes that all classes share beforehand, so that no class is impossible.
        """
        self.k, self.prior = k, prior

    def applies(self, inputs: Inputs) -> bool:
        """Need features."""
        return inputs.features is not None and len(inputs) > 2

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        # More neighbours than half a class has would be of other classes.
        usual = float(np.median(np.bincount(inputs.labels)[np.unique(inputs.labels)]))
        k = min(self.k, max(LEAST, int(usual / 2)))
        labels, everyone = inputs.given, nearest(inputs)[0][:, :k]
        for part in inputs.chunks():
            rows = everyone[part].long()
            votes = torch.zeros(len(rows), inputs.num_classes)
            votes.scatter_add_(1, labels[rows], torch.ones(rows.shape))
            share = votes + self.prior / inputs.num_classes
            yield (share / share.sum(dim=1, keepdim=True)).log()
