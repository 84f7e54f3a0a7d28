"""What an evidence says of every sample, reduced to a few numbers a row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.audits.evidence import Evidence, Inputs
from unswayed.noise.estimate import Confident, compare_confident


class Opinion(NamedTuple):
    """The predictions of all N rows."""

    predicted: NDArray[np.int64]  # (N,)
    confidence: NDArray[np.float64]  # (N,) log-odds of the predicted class against all others
    runner_up: NDArray[np.float64]  # (N,) log-belief in the second class less that in the first


def opinion_of(evidence: Evidence, inputs: Inputs) -> Opinion:
    """Ask an evidence about all rows."""
    predicted = np.empty(len(inputs), dtype=np.int64)
    confidence, runner_up = np.empty(len(inputs)), np.empty(len(inputs))
    for rows, beliefs in zip(inputs.chunks(), evidence.log_beliefs(inputs), strict=True):
        top, classes = beliefs.topk(2, dim=1)
        others = beliefs.scatter(1, classes[:, :1], -torch.inf).logsumexp(dim=1)
        predicted[rows] = classes[:, 0].numpy()
        confidence[rows] = (top[:, 0] - others).numpy()
        runner_up[rows] = (top[:, 1] - top[:, 0]).numpy()
    return Opinion(predicted, confidence, runner_up)


def compared(opinion: Opinion, inputs: Inputs) -> Confident:
    """Compare an opinion with the given labels, by confidence."""
    return compare_confident(
        opinion.predicted, opinion.confidence, inputs.labels, inputs.num_classes
    )
