"""The labels of the nearest neighbours. Zhu et al., ICML 2022, "SimiFeat".

A sample's own label has no say, so nothing can be memorised. Works with features of any encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Ge, Le
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register
from unswayed.randomness import bits
from unswayed.types import Positive

Neighbour = Annotated[int, Ge(1), Le(20)]
BANK = 2**16
"""Rows that others are compared with at the most: the cost is N · BANK · F."""

MOST = 20
"""Neighbours that are looked up."""


def bank_of(inputs: Inputs) -> Tensor:
    """Return rows that stand for all: all of them if they are few, else an even draw."""
    count = len(inputs)
    if count <= BANK:
        return torch.arange(count)
    order = bits(0, "audit bank", torch.arange(count).numpy()).argsort(kind="stable")
    return torch.from_numpy(order[:BANK]).sort().values


def nearest(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return rows (N, MOST) and cosine similarities (N, MOST) of the nearest other samples."""
    if "nearest" not in inputs.cache:
        rows, similarity = zip(*_nearest(inputs), strict=True)
        inputs.cache["nearest"] = torch.cat(rows), torch.cat(similarity)
    return inputs.cache["nearest"]


def _nearest(inputs: Inputs) -> Iterator[tuple[Tensor, Tensor]]:
    assert inputs.features is not None
    bank = bank_of(inputs)
    place = torch.full((len(inputs),), -1)
    place[bank] = torch.arange(len(bank))
    keys = F.normalize(inputs.features[bank].float(), dim=1)
    k = min(MOST, len(bank) - 1)
    for rows in inputs.chunks(len(bank)):
        similarity = F.normalize(inputs.features[rows].float(), dim=1) @ keys.T
        own = place[rows]
        mine = (own >= 0).nonzero().squeeze(1)
        similarity[mine, own[mine]] = -torch.inf
        values, found = similarity.topk(k, dim=1)
        yield bank[found].to(torch.int32), values


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
        labels, everyone = inputs.given, nearest(inputs)[0][:, : self.k]
        for part in inputs.chunks(inputs.num_classes):
            rows = everyone[part].long()
            votes = torch.zeros(len(rows), inputs.num_classes)
            votes.scatter_add_(1, labels[rows], torch.ones(rows.shape))
            share = votes + self.prior / inputs.num_classes
            yield (share / share.sum(dim=1, keepdim=True)).log()
