"""What an evidence says of every given label, reduced to a few numbers a row."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs

TOP = 3
"""Classes that are kept of each row, the most probable first."""


class Opinion(NamedTuple):
    """The judgement of all N rows."""

    margin: Tensor  # (N,) log-belief in the given label less that in the best other class
    best_other: Tensor  # (N,) that class
    top: Tensor  # (N, TOP) classes
    log_top: Tensor  # (N, TOP) log-beliefs in them
    log_given: Tensor  # (N,) log-belief in the given label

    @property
    def predicted(self) -> Tensor:
        """The class that is believed in most, (N,)."""
        return self.top[:, 0]


def opinion_of(evidence: Evidence, inputs: Inputs) -> Opinion:
    """Ask an evidence about all rows."""
    parts = []
    start = 0
    for beliefs in evidence.log_beliefs(inputs):
        labels = inputs.given[start : start + len(beliefs), None]
        start += len(beliefs)
        given = beliefs.gather(1, labels)
        other, best_other = beliefs.scatter(1, labels, -torch.inf).max(dim=1)
        log_top, top = beliefs.topk(min(TOP, beliefs.shape[1]), dim=1)
        margin = given.squeeze(1) - other
        parts.append(Opinion(margin, best_other, top, log_top, given.squeeze(1)))
    return Opinion(*(torch.cat(column) for column in zip(*parts, strict=True)))
