"""Linear heads on frozen features, each asked only about rows it has not seen.

Cross-fitting as confident learning wants it (Northcutt et al., JAIR 2021), at the price of a few
linear models in place of a few networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register
from unswayed.randomness import permutation
from unswayed.types import Positive

STEPS = 50
"""Of L-BFGS, at the most."""


@register("heads", paper="Northcutt et al., JAIR 2021; Alain & Bengio, 2016")
class Heads(Evidence):
    """Out-of-fold predictions of multinomial logistic regression on the features."""

    name = "heads"

    def __init__(self, folds: Annotated[int, Ge(2)] = 5, penalty: Positive = 1.0) -> None:
        """Store the options.

        Args:
            folds: how many heads; each is fitted without one part of the rows.
            penalty: strength of the squared penalty on the weights, as the inverse of
                scikit-learn's C.
        """
        self.folds, self.penalty = folds, penalty

    def applies(self, inputs: Inputs) -> bool:
        """Need features, and a few samples of each fold."""
        return inputs.features is not None and len(inputs) >= 2 * self.folds

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        assert inputs.features is not None
        part = fold_of(inputs, self.folds)
        mean, scale = moments(inputs)
        heads = [self.fit(inputs, part != k, mean, scale) for k in range(self.folds)]
        for rows in inputs.chunks(max(inputs.num_classes, inputs.features.shape[1])):
            x = (inputs.features[rows].float() - mean) / scale
            out = torch.empty(len(x), inputs.num_classes)
            for k, (weight, bias) in enumerate(heads):
                mine = part[rows] == k
                out[mine] = F.log_softmax(x[mine] @ weight + bias, dim=1)
            yield out

    def fit(
        self, inputs: Inputs, rows: Tensor, mean: Tensor, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return weight (F, K) and bias (K,) of the head for these rows."""
        assert inputs.features is not None
        x = (inputs.features[rows].float() - mean) / scale
        y = inputs.given[rows]
        weight = torch.zeros(x.shape[1], inputs.num_classes, requires_grad=True)
        bias = torch.zeros(inputs.num_classes, requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe", tolerance_grad=1e-5
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(x @ weight + bias, y)
            loss = loss + 0.5 * self.penalty / len(x) * weight.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        return weight.detach(), bias.detach()


def fold_of(inputs: Inputs, folds: int) -> Tensor:
    """Return the fold of every row, (N,); each label is spread evenly."""
    labels = inputs.labels
    order = permutation(0, "audit folds", torch.arange(len(labels)).numpy().astype("uint64"), 0)
    by_label = order[labels[order].argsort(kind="stable")]
    part = torch.empty(len(labels), dtype=torch.int64)
    part[torch.from_numpy(by_label)] = torch.arange(len(labels)) % folds
    return part


def moments(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (F,) of the features."""
    assert inputs.features is not None
    count, width = len(inputs), inputs.features.shape[1]
    total, squares = (
        torch.zeros(width, dtype=torch.float64),
        torch.zeros(width, dtype=torch.float64),
    )
    for rows in inputs.chunks(width):
        x = inputs.features[rows].double()
        total += x.sum(dim=0)
        squares += x.square().sum(dim=0)
    mean = total / count
    variance = (squares / count - mean.square()).clamp_min(0)
    return mean.float(), variance.sqrt().clamp_min(1e-6).float()
