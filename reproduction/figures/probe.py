"""A linear layer on frozen features: what it learns, what it memorises, what it could know."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from unswayed.data import Dataset
from unswayed.device import pick_device
from unswayed.errors import UsageError
from unswayed.learners import Classifier
from unswayed.runs import Run
from unswayed.training.measure import memorisation

Labels = NDArray[np.int64]
LR, MOMENTUM, BATCH = 0.01, 0.9, 128
DECAYS = (1e-3, 1e-2, 1e-1, 1.0)


class Seen(NamedTuple):
    """What a probe does after an epoch."""

    memorised: float
    recovered: float
    test_accuracy: float


def network(run: Run) -> Classifier:
    """Return the one network of a run."""
    net = run.classifier()
    if not isinstance(net, Classifier):
        raise UsageError(f"{run.path} has several networks; a figure of features needs one")
    return net.to(pick_device("auto"))


def true_labels(data: Dataset) -> Labels:
    """Return the true labels, which a figure of wrong ones needs."""
    if data.true is None:
        raise UsageError("these data do not say which labels are wrong; take data with true labels")
    return data.true


def standardised(train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    """Return features with mean 0 and deviation 1 in training: no scale is favoured by a rate."""
    std, mean = torch.std_mean(train, dim=0)
    return (train - mean) / std.clamp_min(1e-6), (test - mean) / std.clamp_min(1e-6)


def probe(
    train: tuple[Tensor, Labels, Labels],
    test: tuple[Tensor, Labels],
    *,
    epochs: int,
    seed: int,
) -> list[Seen]:
    """Train a linear layer by SGD, and look at it after every epoch.

    Args:
        train: features (N, F), given and true labels.
        test: features and true labels.
        epochs: how many; the rate falls as a cosine.
        seed: of the order and the weights.
    """
    x, given, true = train
    x_test, y_test = test
    wrong = given != true
    y = torch.from_numpy(given)
    generator = torch.Generator().manual_seed(seed)
    layer = _linear(x.shape[1], int(max(true.max(), given.max())) + 1, generator)
    optimizer = torch.optim.SGD(layer.parameters(), LR, MOMENTUM)
    steps = max(1, len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    found = []
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        for rows in order[: steps * BATCH].view(steps, -1):
            loss = F.cross_entropy(layer(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            guess, unseen = (layer(each).argmax(dim=1).numpy() for each in (x[wrong], x_test))
        split = memorisation(guess, given[wrong], true[wrong])
        found.append(Seen(split.as_given, split.as_true, float((unseen == y_test).mean())))
    return found


def _linear(features: int, classes: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(features, classes)
    bound = 1 / math.sqrt(features)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer


def information_bits(
    x: Tensor, labels: Labels, *, known: Labels | None = None, seed: int, steps: int = 300
) -> float:
    """Return a lower bound on I(Z; Y), or I(Z; Y | C), in bits.

    It is H(Y), or H(Y | C), minus the cross entropy of a probe that sees Z, and C, on held-out
    rows. The probe is a linear layer fitted by L-BFGS on half of the rows, with the weight decay
    that is best on a quarter of that half; the entropy is that of the other half. Where the probe
    guesses worse than the frequencies the result is negative, and says nothing.

    Args:
        x: (n, F) features.
        labels: (n,).
        known: (n,) C; nothing without it.
        seed: of the halves.
        steps: of the optimizer.
    """
    kinds, y = np.unique(labels, return_inverse=True)
    classes, c = np.unique(np.zeros_like(y) if known is None else known, return_inverse=True)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    fit, held = order[: len(y) // 2], order[len(y) // 2 :]
    target = torch.from_numpy(y)
    x = torch.cat([x.double(), F.one_hot(torch.from_numpy(c)).double()], dim=1)
    decayed = x.shape[1] - len(classes)

    def left(decay: float, seen: Tensor, unseen: Tensor) -> float:
        layer = _fitted(x[seen], target[seen], len(kinds), decay, decayed, steps)
        with torch.no_grad():
            return float(F.cross_entropy(layer(x[unseen]), target[unseen]))

    part = len(fit) // 4
    best = min(DECAYS, key=lambda decay: left(decay, fit[part:], fit[:part]))
    counts = np.zeros((len(classes), len(kinds)))
    np.add.at(counts, (c[held.numpy()], y[held.numpy()]), 1)
    entropy = _entropy(counts) - _entropy(counts.sum(axis=1))
    return (entropy - left(best, fit, held)) / math.log(2)


def _fitted(
    x: Tensor, y: Tensor, classes: int, decay: float, decayed: int, steps: int
) -> nn.Linear:
    """Return a linear layer whose weights of the first inputs decay; the others next to not."""
    layer = nn.Linear(x.shape[1], classes).double()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(layer(x), y) + decay * layer.weight[:, :decayed].square().sum()
        # What is known costs next to no decay: it is to be taken for granted.
        value = value + 1e-4 * layer.weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return layer


def _entropy(counts: NDArray[np.float64]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
