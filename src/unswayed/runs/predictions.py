"""What the last network says of every sample, computed once at the end of a training."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from unswayed import files
from unswayed.errors import DamagedFileError
from unswayed.processes import is_first
from unswayed.training.measure import logits_and_features
from unswayed.training.trainer import Trainer

FILE = "predictions.safetensors"
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

    def write(self, folder: Path) -> None:
        """Write them into a run folder."""
        tensors = {name: each for name, each in vars(self).items() if each is not None}
        files.write_tensors(folder / FILE, tensors, {})


@torch.no_grad()
def predict_all(trainer: Trainer) -> Predictions | None:
    """Evaluate all training samples; `train.predictions` says what is kept of them."""
    keep = trainer.settings.predictions
    if keep == "none":
        return None
    writes = is_first()  # the other processes help, and keep nothing
    logits: list[Tensor] = []
    features: list[Tensor] = []
    test: list[Tensor] = []
    with trainer.autocast():
        for seen, inner in logits_and_features(trainer.classifier, trainer.train):
            if writes:
                logits.append(_half(seen))
            if writes and keep == "features":
                features.append(_half(inner))
        if keep == "features" and trainer.splits.test is not None:
            both = logits_and_features(trainer.classifier, trainer.splits.test)
            test = [_half(inner) for _, inner in both if writes]
    if not writes:
        return None
    kept = (torch.cat(each) if each else None for each in (features, test))
    return Predictions(torch.cat(logits), *kept)


def _half(x: Tensor) -> Tensor:
    return x.clamp(-LARGEST, LARGEST).half()
