"""Evaluate a network on whole data sets. Accuracy is always correct ÷ total."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unswayed.data import Dataset
from unswayed.device import sent
from unswayed.learners import Classifier, Network
from unswayed.processes import count, gathered, part, sizes

Rows = NDArray[np.int64]
BATCH, PIXELS = 1024, 2**20
"""The most images evaluated at a time, and the most pixels."""


def probabilities(net: nn.Module, data: Dataset, rows: Rows | None = None) -> Tensor:
    """Return class probabilities (n, K) on the CPU, of images without augmentation."""
    rows = np.arange(len(data)) if rows is None else rows
    return torch.cat(list(probability_batches(net, data, rows)))


def probability_batches(net: nn.Module, data: Dataset, rows: Rows) -> Iterator[Tensor]:
    """Yield the same (b, K) of these rows, in order, a batch at a time; at least one batch."""
    if len(rows) == 0:
        yield torch.zeros(0, data.num_classes)
    yield from _answers(net, lambda images: net(images).softmax(dim=1), data, rows)


def features(net: Classifier, data: Dataset, rows: Rows | None = None) -> Tensor:
    """Return the input of the linear layer, (n, F) on the CPU, of images without augmentation."""
    found = list(_answers(net, lambda images: net.backbone(net.normalize(images)), data, rows))
    return torch.cat(found) if found else torch.zeros(0, net.head.in_features)


def logits_and_features(net: Network, data: Dataset) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield logits (b, K) and features (b, F) of all rows, in order, a batch at a time.

    Features of several networks are concatenated.
    """

    def ask(images: Tensor) -> Tensor:
        seen = [part.features(images) for part in net.parts]
        logits = torch.stack([part.head_of(f) for part, f in zip(net.parts, seen, strict=True)])
        return torch.cat([logits.mean(dim=0), *(f.float() for f in seen)], dim=1)

    for both in _answers(net, ask, data, None):
        yield both[:, : data.num_classes], both[:, data.num_classes :]


@torch.no_grad()
def _answers(
    net: nn.Module, ask: Callable[[Tensor], Tensor], data: Dataset, rows: Rows | None
) -> Iterator[Tensor]:
    """Yield the outputs of a network for batches of images, in evaluation mode.

    Several processes share the work, and all of them get all outputs.
    """
    rows = np.arange(len(data)) if rows is None else rows
    device = next(net.parameters()).device
    height, width = data.image_size
    size = max(1, min(BATCH, PIXELS // (height * width)))
    was_training = net.training
    net.eval()
    try:
        for start in range(0, len(rows), size * count()):
            batch = rows[start : start + size * count()]
            mine = batch[part(len(batch))]
            seen = mine if len(mine) else batch[:1]  # networks refuse a batch without images
            answer = ask(_load(data, seen, device)).cpu()[: len(mine)]
            yield gathered(answer, sizes(len(batch)))
    finally:
        net.train(was_training)


def _load(data: Dataset, rows: Rows, device: torch.device) -> Tensor:
    images = sent(data.images[torch.from_numpy(rows)], device)
    return (images.float() / 255).contiguous(memory_format=torch.channels_last)


def predictions(net: nn.Module, data: Dataset, rows: Rows | None = None) -> NDArray[np.int64]:
    """Return the most probable class of each row."""

    def ask(images: Tensor) -> Tensor:
        return torch.as_tensor(net(images).softmax(dim=1).argmax(dim=1))

    found = list(_answers(net, ask, data, rows))
    return torch.cat(found).numpy() if found else np.zeros(0, np.int64)


def accuracy(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return correct ÷ total."""
    return float((predicted == labels).mean())


class Memorisation(NamedTuple):
    """How samples with a wrong label are predicted; the shares sum to one."""

    as_given: float  # memorised
    as_true: float  # recovered
    other: float


def memorisation(
    predicted: NDArray[np.int64], given: NDArray[np.int64], true: NDArray[np.int64]
) -> Memorisation:
    """Return shares of predictions for wrongly labelled samples; all labels must be wrong."""
    as_given, as_true = predicted == given, predicted == true
    other = ~(as_given | as_true)
    return Memorisation(*(float(kind.mean()) for kind in (as_given, as_true, other)))


class Measurement(NamedTuple):
    """Measures a network after an epoch."""

    train: Dataset
    test: Dataset | None
    rows: Rows  # that are trained on
    holdout: Rows  # that are not

    def __call__(self, net: nn.Module) -> dict[str, float]:
        """Return the numbers that can be measured, by their names in `Numbers`."""
        train, found = self.train, {}
        if self.test is not None:
            found["test_accuracy"] = accuracy(predictions(net, self.test), self.test.given)
        if len(self.holdout):
            guess = predictions(net, train, self.holdout)
            found["holdout_accuracy"] = accuracy(guess, train.given[self.holdout])
        if train.true is not None:
            rows = self.rows[train.given[self.rows] != train.true[self.rows]]
            if len(rows):
                guess = predictions(net, train, rows)
                split = memorisation(guess, train.given[rows], train.true[rows])
                found |= {f"wrong_{name}": share for name, share in split._asdict().items()}
        return found
