"""Data sets: stable ids, images as uint8 batches, given labels and, where known, true ones."""

from __future__ import annotations

from unswayed.data.dataset import Dataset, Splits, stratified_split
from unswayed.registry import Registry

__all__ = ["DATASETS", "Dataset", "Splits", "register", "stratified_split"]

DATASETS: Registry[Splits] = Registry("data set", __name__)
register = DATASETS.register
