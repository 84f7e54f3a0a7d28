"""Linear heads on frozen features, each asked only about rows it has not seen.

Cross-fitting as confident learning wants it (Northcutt et al., JAIR 2021), at the price of a few
linear models in place of a few networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor

from unswayed.audits.evidence import Evidence, Inputs, register
from unswayed.data.progress import tell
from unswayed.randomness import permutation
from unswayed.types import Positive

STEPS, ENOUGH = 50, 20_000
"""Of L-BFGS at the most, and samples that a head is fitted to at the most."""

PENALTIES, SCALES = (1.0, 10.0, 100.0, 300.0, 1000.0, 3000.0), (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)
"""What is tried."""


@register("heads", paper="Northcutt et al., JAIR 2021; Alain & Bengio, 2016")
class Heads(Evidence):
    """Out-of-fold predictions of multinomial logistic regression on the features."""

    name = "heads"

    def __init__(self, folds: Annotated[int, Ge(2)] = 5, penalty: Positive | None = None) -> None:
        """Store the options.

        Args:
            folds: how many heads; each is fitted without one part of the rows.
            penalty: strength of the squared penalty on the weights, as the inverse of
                scikit-learn's C. If not given, the one whose head explains the labels of its fold
                best. With many features, a weak penalty lets heads learn wrong labels by heart.
        """
        self.folds, self.penalty = folds, penalty

    def applies(self, inputs: Inputs) -> bool:
        """Need features, and a few samples of each fold."""
        return inputs.features is not None and len(inputs) >= 2 * self.folds

    def log_beliefs(self, inputs: Inputs) -> Iterator[Tensor]:
        """Yield (b, K)."""
        part, x = fold_of(inputs, self.folds), Scaled(inputs)
        heads = self.heads(inputs, part, x)
        for rows in inputs.chunks():
            out = torch.empty(rows.stop - rows.start, inputs.num_classes)
            for k, (weight, bias) in enumerate(heads):
                mine = part[rows] == k
                out[mine] = F.log_softmax(x[rows][mine] @ weight + bias, dim=1)
            yield out

    def heads(self, inputs: Inputs, part: Tensor, x: Scaled) -> list[tuple[Tensor, Tensor]]:
        """Return the heads; they are fitted once for the same rows."""
        if "heads" not in inputs.cache:
            penalty = self.penalty or choose_penalty(inputs, part, x)
            fitted = []
            for k in range(self.folds):
                tell("fitting heads", k, self.folds)
                fitted.append(fit(inputs, _some(inputs, part != k), x, penalty))
            weights, biases = zip(*fitted, strict=True)
            inputs.cache["heads"] = torch.stack(weights), torch.stack(biases)
        return list(zip(*inputs.cache["heads"], strict=True))


def choose_penalty(inputs: Inputs, part: Tensor, x: Scaled) -> float:
    """Return the penalty whose head explains the labels of the first fold best, at its best scale.

    A strong penalty makes beliefs flat, which a scale mends; what it takes from their order counts.
    """
    rows, fold = _some(inputs, part != 0), _some(inputs, part == 0)
    labels, costs = inputs.given[fold], []
    for number, penalty in enumerate(PENALTIES):
        tell("choosing the penalty of heads", number, len(PENALTIES))
        weight, bias = fit(inputs, rows, x, penalty)
        logits = x[fold] @ weight + bias
        losses = (float(F.cross_entropy(scale * logits, labels)) for scale in SCALES)
        costs.append(min(losses))
    return PENALTIES[int(np.argmin(costs))]


def fit(inputs: Inputs, rows: Tensor, x: Scaled, penalty: float) -> tuple[Tensor, Tensor]:
    """Return weight (F, K) and bias (K,) of the head for these rows."""
    known, y = x[rows], inputs.given[rows]
    weight = torch.zeros(known.shape[1], inputs.num_classes, requires_grad=True)
    bias = torch.zeros(inputs.num_classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe", tolerance_grad=1e-5
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(known @ weight + bias, y)
        loss = loss + 0.5 * penalty / len(known) * weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def _some(inputs: Inputs, of: Tensor) -> Tensor:
    """Return these rows, or as many of them as are enough."""
    rows = of.nonzero().squeeze(1)
    if len(rows) <= ENOUGH:
        return rows
    order = permutation(0, "audit heads", inputs.keys[rows.numpy()])
    return rows[torch.from_numpy(np.sort(order[:ENOUGH]))]


class Scaled:
    """Features with mean 0 and deviation 1, made where they are asked for."""

    def __init__(self, inputs: Inputs) -> None:
        assert inputs.features is not None
        self.features = inputs.features
        self.mean, self.scale = moments(inputs)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        """Return (b, F)."""
        return (self.features[rows].float() - self.mean) / self.scale


def fold_of(inputs: Inputs, folds: int) -> Tensor:
    """Return the fold of every row, (N,); each label is spread evenly.

    It hangs on what samples look like: neither on their order, nor on the order of the classes.
    """
    order = permutation(0, "audit folds", inputs.keys)
    labels = inputs.labels[order]
    part = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = order[labels == label]
        start = int(inputs.keys[rows[0]] % np.uint64(folds))
        part[rows] = (start + np.arange(len(rows))) % folds
    return torch.from_numpy(part)


def moments(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (F,) of the features."""
    assert inputs.features is not None
    count, width = len(inputs), inputs.features.shape[1]
    total, squares = (
        torch.zeros(width, dtype=torch.float64),
        torch.zeros(width, dtype=torch.float64),
    )
    for rows in inputs.chunks():
        x = inputs.features[rows].double()
        total += x.sum(dim=0)
        squares += x.square().sum(dim=0)
    mean = total / count
    variance = (squares / count - mean.square()).clamp_min(0)
    return mean.float(), variance.sqrt().clamp_min(1e-6).float()
