"""What the last network says of every sample, computed once at the end of a training."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from unswayed import files
from unswayed.errors import DamagedFileError
from unswayed.files import Shape
from unswayed.processes import is_first
from unswayed.training.measure import logits_and_features
from unswayed.training.trainer import Trainer

FILE = "predictions.safetensors"
Append = Callable[[str, Tensor], None]
LARGEST = torch.finfo(torch.float16).max


@dataclass(frozen=True)
class Predictions:
    """Logits and features of all N training samples, without augmentation, in half precision.

    Logits are kept because probabilities saturate near 0 and 1, which would lose the margin.
    """

    logits: Tensor  # (N, K) float16
    features: Tensor | None = None  # (N, F) float16, the input of the linear layer
    test_features: Tensor | None = None  # the same of the test samples, if there are any

    @property
    def probabilities(self) -> Tensor:
        """Class probabilities (N, K), float32."""
        return self.logits.float().softmax(dim=1)

    @classmethod
    def read(cls, folder: Path, samples: int, classes: int) -> Predictions:
        """Read them from the folder of a run with so many training samples and classes."""
        tensors, _ = files.read_tensors(folder / FILE)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        known = {*shapes} <= {each.name for each in fields(cls)}
        flat = all(len(shape) == 2 for shape in shapes.values())
        right = shapes.get("logits") == (samples, classes)
        if not (known and flat and right and shapes.get("features", (samples,))[0] == samples):
            raise DamagedFileError(
                f"{folder / FILE} is damaged: it holds {shapes}, expected are logits of shape "
                f"{(samples, classes)} and features"
            )
        return cls(**tensors)


@torch.no_grad()
def write_predictions(trainer: Trainer, folder: Path) -> None:
    """Evaluate all training samples, and write what `train.predictions` says into a run folder.

    A batch is written as soon as it is evaluated. Other processes than the first help, and write
    nothing.
    """
    keep = trainer.settings.predictions
    if keep == "none":
        return
    net, (train, test) = trainer.classifier, trainer.splits
    width = sum(part.head.in_features for part in net.parts)
    shapes = {"logits": (len(train), train.num_classes)}
    if keep == "features":
        shapes["features"] = (len(train), width)
        shapes |= {} if test is None else {"test_features": (len(test), width)}
    whole = {name: Shape(torch.float16, shape) for name, shape in shapes.items()}
    with ExitStack() as until_done:
        append: Append = _drop
        if is_first():
            append = until_done.enter_context(files.writing(folder / FILE, whole, {}))
        until_done.enter_context(trainer.autocast())
        for logits, features in logits_and_features(net, train):
            append("logits", _half(logits))
            if keep == "features":
                append("features", _half(features))
        if "test_features" in whole and test is not None:
            for _, features in logits_and_features(net, test):
                append("test_features", _half(features))


def _drop(name: str, rows: Tensor) -> None:
    """Write nothing."""


def _half(x: Tensor) -> Tensor:
    return x.clamp(-LARGEST, LARGEST).half()
