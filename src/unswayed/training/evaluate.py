"""The one accuracy: correct ÷ total."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unswayed.data import Dataset
from unswayed.learners import Classifier

Rows = NDArray[np.int64]
BATCH, PIXELS = 1024, 2**20
"""Images evaluated at a time, and how many pixels they may have together."""


def probabilities(net: nn.Module, data: Dataset, rows: Rows | None = None) -> Tensor:
    """Return class probabilities (n, K) on the CPU, of images without augmentation."""
    found = _answers(net, lambda images: net(images).softmax(dim=1), data, rows)
    return torch.cat(found) if found else torch.zeros(0, data.num_classes)


def features(net: Classifier, data: Dataset, rows: Rows | None = None) -> Tensor:
    """Return what the linear layer sees, (n, F) on the CPU, of images without augmentation."""
    found = _answers(net, lambda images: net.backbone(net.normalize(images)), data, rows)
    return torch.cat(found) if found else torch.zeros(0, net.head.in_features)


@torch.no_grad()
def _answers(
    net: nn.Module, ask: Callable[[Tensor], Tensor], data: Dataset, rows: Rows | None
) -> list[Tensor]:
    """Return what a network answers to batches of images, in evaluation mode."""
    rows = np.arange(len(data)) if rows is None else rows
    device = next(net.parameters()).device
    height, width = data.image_size
    size = max(1, min(BATCH, PIXELS // (height * width)))
    was_training = net.training
    net.eval()
    try:
        return [
            ask(_load(data, rows[start : start + size], device)).cpu()
            for start in range(0, len(rows), size)
        ]
    finally:
        net.train(was_training)


def _load(data: Dataset, rows: Rows, device: torch.device) -> Tensor:
    images = data.images[torch.from_numpy(rows)].to(device)
    return (images.float() / 255).contiguous(memory_format=torch.channels_last)


def predictions(net: nn.Module, data: Dataset, rows: Rows | None = None) -> NDArray[np.int64]:
    """Return the most probable class of each row."""
    return probabilities(net, data, rows).argmax(dim=1).numpy()


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
    """Split the wrongly labelled samples by what is predicted for them; all must be wrong."""
    as_given, as_true = predicted == given, predicted == true
    other = ~(as_given | as_true)
    return Memorisation(*(float(kind.mean()) for kind in (as_given, as_true, other)))
