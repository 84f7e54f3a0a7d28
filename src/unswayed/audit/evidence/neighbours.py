"""The labels of the nearest neighbours. Zhu et al., ICML 2022, "SimiFeat".

A sample's own label has no say, so nothing can be memorised. Works with features of any encoder.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.audit.evidence import Evidence, Inputs, register
from unswayed.randomness import bits
from unswayed.types import Count, Positive

BANK = 2**16
"""Rows that others are compared with at the most: the cost is N · BANK · F."""


def bank_of(inputs: Inputs) -> Tensor:
    """Return rows that stand for all: all of them if they are few, else an even draw."""
    count = len(inputs)
    if count <= BANK:
        return torch.arange(count)
    order = bits(0, "audit bank", torch.arange(count).numpy()).argsort(kind="stable")
    return torch.from_numpy(order[:BANK]).sort().values


def nearest(inputs: Inputs, k: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rows (b, k) and cosine similarities (b, k) of the nearest other samples, by chunks."""
    assert inputs.features is not None
    bank = bank_of(inputs)
    place = torch.full((len(inputs),), -1)
    place[bank] = torch.arange(len(bank))
    keys = F.normalize(inputs.features[bank].float(), dim=1)
    k = min(k, len(bank) - 1)
    for rows in inputs.chunks(len(bank)):
        similarity = F.normalize(inputs.features[rows].float(), dim=1) @ keys.T
        own = place[rows]
        mine = (own >= 0).nonzero().squeeze(1)
        similarity[mine, own[mine]] = -torch.inf
        values, found = similarity.topk(k, dim=1)
        yield bank[found], values


@register("neighbours", paper="Zhu et al., ICML 2022")
class Neighbours(Evidence):
    """The share of each label among the nearest neighbours in feature space."""

    name = "neighbours"

    def __init__(self, k: Count = 20, prior: Positive = 0.5) -> None:
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
        labels = inputs.given
        for rows, _ in nearest(inputs, self.k):
            votes = torch.zeros(len(rows), inputs.num_classes)
            votes.scatter_add_(1, labels[rows], torch.ones(rows.shape))
            share = votes + self.prior / inputs.num_classes
            yield (share / share.sum(dim=1, keepdim=True)).log()
