"""Train each given case on the CPU and on a device that does not exist, and say what happened.

python trained.py OUT NAME=OVERRIDES ...                              one process
torchrun --nproc-per-node 2 trained.py OUT NAME=OVERRIDES ...         two of them
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pretend
import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed import Dataset, Recipe, build, processes
from unswayed.data import Splits
from unswayed.files import read_tensors
from unswayed.losses import Loss, register
from unswayed.runs.predictions import FILE, write_predictions
from unswayed.training import trainer as training
from unswayed.training.trainer import Trainer
from unswayed.types import Step

TINY = (
    "data.name=memory",
    "noise.name=symmetric",
    "noise.rate=0.4",
    "train.epochs=4",
    "train.batch_size=30",
    "train.holdout=0.2",
    "train.threads=1",
    "train.evaluate_every=2",
)


@register("left_behind")
class LeftBehind(Loss):
    """Forgets where its input is."""

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        return F.cross_entropy(logits, labels, reduction="none") * torch.ones(len(labels))


@register("kept_behind")
class KeptBehind(Loss):
    """Remembers samples in a tensor that does not move with the module."""

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.seen = torch.zeros(num_samples)

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        return F.cross_entropy(logits, labels, reduction="none") + self.seen[index]


@register("curious")
class Curious(Loss):
    """Looks at a number that only the device knows."""

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        losses = F.cross_entropy(logits, labels, reduction="none")
        return losses if losses.max() > 0 else losses.abs()


@register("choosy")
class Choosy(Loss):
    """Takes rows by a mask, whose number of rows only the device knows."""

    def forward(self, logits: Tensor, labels: Tensor, index: Tensor | None = None) -> Tensor:
        losses = F.cross_entropy(logits, labels, reduction="none")
        return losses + losses[losses > 0].mean() - losses[losses > 0].mean()


def pictures() -> Splits:
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 3
    images = rng.integers(0, 150, (100, 12, 12, 3), dtype=np.uint8)
    images[np.arange(100), :, :, labels] += 100
    train, test = (
        Dataset.from_arrays(images[rows], labels[rows], classes=["a", "b", "c"])
        for rows in (slice(0, 80), slice(80, 100))
    )
    return Splits(train, test)


def recipe(overrides: list[str]) -> Recipe:
    named = any(word.startswith("model.name=") for word in overrides)
    return Recipe.load("digits", *TINY, *([] if named else ["model.width=4"]), *overrides)


def average_gradients(trainer: Trainer) -> None:
    """Do what DistributedDataParallel does, whose C++ part asks for a real device."""
    trainer.model = trainer.learner
    clip = trainer.optimization.clip

    def averaged() -> Tensor:
        for parameter in trainer.learner.parameters():
            if parameter.grad is not None:
                parameter.grad = processes.summed(parameter.grad) / processes.count()
        return clip()

    trainer.optimization.clip = averaged


def trained(overrides: list[str], device: torch.device) -> dict[str, list]:
    """Train, go on from the middle, and return all numbers and how often a step waited."""
    build.pick_device = lambda _: device  # PyTorch cannot be asked for this device by name
    build.check_precision = lambda *_: None
    training._shared = lambda learner: learner

    def new():
        trainer = build.assemble(recipe(overrides), pictures())[0]
        if processes.count() > 1:
            average_gradients(trainer)
        return trainer

    trainer, waited = new(), []
    found: dict[str, list] = {"losses": [], "epochs": [], "predictions": [], "again": []}
    pretend.waits.clear()
    pretend.convolved.clear()
    for event in trainer.events():
        if isinstance(event, Step):
            found["losses"].append(event.loss)
            waited.append(sum(n for (when, _), n in pretend.waits.items() if when == "step"))
            if (event.epoch, event.step) == (event.epochs - 2, event.steps):
                tensors, plain = trainer.state()
                state = {k: v.cpu().clone() for k, v in tensors.items()}, plain
        else:
            found["epochs"].append(event.metrics.model_dump(exclude={"seconds"}))
            found["epochs"].append(event.records.loss.nan_to_num().tolist())
    found["waits"] = np.diff([0, *waited]).tolist()
    found["places"] = Counter()
    for (when, place), number in pretend.waits.items():
        found["places"][place] += number * (when == "step")
    with TemporaryDirectory() as folder:
        write_predictions(trainer, Path(folder))
        if processes.is_first():  # which writes them
            kept = read_tensors(Path(folder) / FILE)[0]
            found["predictions"] = kept["logits"].tolist()
    again = new()
    again.load_state(*state)
    found["again"] = [event.loss for event in again.events() if isinstance(event, Step)]
    return found


def main() -> None:
    torch.set_num_threads(1)
    processes.start()
    device, found = pretend.register(), {}
    for case in sys.argv[2:]:
        name, _, overrides = case.partition("=")
        here = trained(overrides.split(), torch.device("cpu"))
        try:
            with pretend.Device():
                there = trained(overrides.split(), device)
        except Exception:
            found[name] = {"error": traceback.format_exc()}
            continue
        numbers = ("losses", "epochs", "predictions", "again")
        found[name] = {
            "first": [here["losses"][0], there["losses"][0]],
            "convolved": sorted(map(str, pretend.convolved)),
            "same": all(here[kind] == there[kind] for kind in numbers),
            "resumed": there["again"] == there["losses"][-len(there["again"]) :],
            "waits": there["waits"],
            "places": +there["places"],
        }
    if processes.is_first():
        Path(sys.argv[1]).write_text(json.dumps(found))
    processes.wait()
    processes.leave(0)


if __name__ == "__main__":
    main()
