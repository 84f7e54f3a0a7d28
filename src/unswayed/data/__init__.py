"""Data sets: uint8 images with stable ids, given labels, and true labels if known."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unswayed.registry import Registry

if TYPE_CHECKING:
    from unswayed.data.adapters import from_huggingface as from_huggingface
    from unswayed.data.adapters import from_torch as from_torch
    from unswayed.data.dataset import Dataset as Dataset
    from unswayed.data.dataset import Splits as Splits
    from unswayed.data.dataset import stratified_split as stratified_split

DATASETS: Registry[Splits] = Registry("data set", __name__)
register = DATASETS.register

# Imported when first asked for: listing files does not need PyTorch.
_HOMES = {
    "Dataset": "unswayed.data.dataset",
    "Splits": "unswayed.data.dataset",
    "stratified_split": "unswayed.data.dataset",
    "from_torch": "unswayed.data.adapters",
    "from_huggingface": "unswayed.data.adapters",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
