"""The arrays of an .npz file with corrected labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unswayed.data.npz import read_arrays
from unswayed.errors import UsageError
from unswayed.exports.corrections import Corrections
from unswayed.exports.source import check_unchanged


def write_arrays(new: Path, corrections: Corrections) -> None:
    """Write the same arrays; samples that are left out are missing in all those for training."""
    run, labels = corrections.run, corrections.labels
    classes = run.provenance.data.classes
    arrays = read_arrays(Path(run.recipe.sections["data"]["path"]))
    given = arrays["train_y"]
    ids = [f"train/{row}" for row in range(given.size)]
    check_unchanged(corrections, ids, [classes[k] for k in given.tolist()])
    kept = np.flatnonzero([labels[name] is not None for name in ids])
    number = {name: k for k, name in enumerate(classes)}
    chosen = [number[label] for name in ids if (label := labels[name]) is not None]
    changed: dict[str, Any] = {
        name: array[kept] if name.startswith("train_") else array for name, array in arrays.items()
    }
    changed["train_y"] = np.array(chosen).astype(given.dtype)
    if not chosen:
        raise UsageError("every sample is left out: nothing would be left to train on")
    if max(chosen) < given.max() and "classes" not in arrays:
        changed["classes"] = np.array(classes)  # the last class has lost all its samples
    with new.open("wb") as file:
        np.savez(file, allow_pickle=False, **changed)
