"""What the last network says of every training row, held-out ones included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unswayed import files
from unswayed.training.measure import logits_and_features
from unswayed.training.trainer import Trainer

FILE = "predictions.safetensors"
LARGEST = torch.finfo(torch.float16).max


@dataclass(frozen=True)
class Predictions:
    """One look at all N training images, without augmentation, in half precision.

    Logits are kept rather than probabilities: these saturate, and the margin would be lost.
    """

    logits: Tensor  # (N, K) float16
    features: Tensor | None = None  # (N, F) float16, what the linear layer sees

    @property
    def probabilities(self) -> Tensor:
        """Class probabilities (N, K), float32."""
        return self.logits.float().softmax(dim=1)

    @classmethod
    def read(cls, folder: Path) -> Predictions:
        """Return what a run folder holds."""
        return cls(**files.read_tensors(folder / FILE)[0])

    def write(self, folder: Path) -> None:
        """Keep it in a run folder."""
        tensors = {"logits": self.logits}
        if self.features is not None:
            tensors["features"] = self.features
        files.write_tensors(folder / FILE, tensors, {})


@torch.no_grad()
def predict_all(trainer: Trainer) -> Predictions | None:
    """Look at all rows once more, as far as `train.predictions` says; 2 N (K + F) bytes."""
    keep = trainer.settings.predictions
    if keep == "none":
        return None
    logits: list[Tensor] = []
    features: list[Tensor] = []
    with trainer.autocast():
        for seen, inner in logits_and_features(trainer.classifier, trainer.train):
            logits.append(_half(seen))
            if keep == "features":
                features.append(_half(inner))
    return Predictions(torch.cat(logits), torch.cat(features) if features else None)


def _half(x: Tensor) -> Tensor:
    return x.clamp(-LARGEST, LARGEST).half()
