"""Arrays from a `.npz` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.data import Dataset, Splits, register
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean

_KNOWN = {"train_x", "train_y", "train_true", "test_x", "test_y", "classes"}


@register("npz")
def npz(path: str) -> Splits:
    """Arrays of a .npz file: train_x, train_y, and if you have them train_true, test_x, test_y.

    Images are uint8 (N, H, W), (N, H, W, C) or (N, C, H, W); labels are integers from 0; `classes`
    may hold the class names. Pickled objects are refused.

    Args:
        path: the file.
    """
    arrays = _read(Path(path))
    for name in ("train_x", "train_y"):
        if name not in arrays:
            raise UsageError(f"{path} has no array {name!r}; it has: {', '.join(sorted(arrays))}")
    for name in arrays.keys() - _KNOWN:
        raise UsageError(f"{path}: array {name!r} is not understood; {did_you_mean(name, _KNOWN)}")
    labels = np.concatenate([arrays[k] for k in ("train_y", "test_y") if k in arrays])
    names = (
        [str(c) for c in arrays["classes"]]
        if "classes" in arrays
        else [str(k) for k in range(int(labels.max()) + 1 if labels.size else 0)]
    )
    train = Dataset.from_arrays(
        arrays["train_x"],
        arrays["train_y"],
        true=arrays.get("train_true"),
        classes=names,
        ids=[f"train/{i}" for i in range(len(arrays["train_x"]))],
    )
    if "test_x" not in arrays:
        return Splits(train, None)
    if "test_y" not in arrays:
        raise UsageError(f"{path} has test_x but no test_y")
    test = Dataset.from_arrays(
        arrays["test_x"],
        arrays["test_y"],
        true=arrays["test_y"],
        classes=names,
        ids=[f"test/{i}" for i in range(len(arrays["test_x"]))],
    )
    return Splits(train, test)


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise UsageError(f"data.path: there is no file {path}") from None
    except Exception as error:  # zip, zlib and NumPy each have their own for a damaged file
        raise UsageError(f"{path} is not a readable .npz of plain arrays: {error}") from error
