"""What an evidence says of every sample, reduced to a few numbers a row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.audits.evidence import Evidence, Inputs


class Opinion(NamedTuple):
    """The predictions of all N rows."""

    predicted: NDArray[np.int64]  # (N,)
    confidence: NDArray[np.float64]  # (N,) log-odds of the predicted class against all others


def opinion_of(evidence: Evidence, inputs: Inputs) -> Opinion:
    """Ask an evidence about all rows."""
    predicted = np.empty(len(inputs), dtype=np.int64)
    confidence = np.empty(len(inputs))
    for rows, beliefs in zip(inputs.chunks(), evidence.log_beliefs(inputs), strict=True):
        top, classes = beliefs.max(dim=1, keepdim=True)
        others = beliefs.scatter(1, classes, -torch.inf).logsumexp(dim=1)
        predicted[rows] = classes.squeeze(1).numpy()
        confidence[rows] = (top.squeeze(1) - others).numpy()
    return Opinion(predicted, confidence)
