"""Arrays from a `.npz` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from unswayed import parsing
from unswayed.data import Dataset, Splits, register
from unswayed.data.dataset import MAX_CLASSES, check_labels
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean
from unswayed.types import AbsolutePath

_KNOWN = {"train_x", "train_y", "train_true", "test_x", "test_y", "classes"}


@register("npz")
def npz(path: AbsolutePath) -> Splits:
    """Arrays of a .npz file: train_x, train_y, and if you have them train_true, test_x, test_y.

    Images are uint8 (N, H, W), (N, H, W, C) or (N, C, H, W); labels are integers from 0; `classes`
    may hold the class names. Pickled objects are refused.

    Args:
        path: the file.
    """
    arrays = read_arrays(Path(path))
    for name in ("train_x", "train_y"):
        if name not in arrays:
            raise UsageError(f"{path} has no array {name!r}; it has: {', '.join(sorted(arrays))}")
    for name in arrays.keys() - _KNOWN:
        raise UsageError(f"{path}: array {name!r} is not understood; {did_you_mean(name, _KNOWN)}")
    if "test_x" in arrays and "test_y" not in arrays:
        raise UsageError(f"{path} has test_x but no test_y")
    try:
        names = _class_names(arrays)
        train = _split(arrays, "train", names)
        test = _split(arrays, "test", names) if "test_x" in arrays else None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return Splits(train, test)


def _class_names(arrays: dict[str, NDArray[Any]]) -> list[str]:
    if "classes" in arrays:
        names = arrays["classes"].reshape(-1)
        if len(names) > MAX_CLASSES:
            raise UsageError(f"it names {len(names):,} classes; {MAX_CLASSES:,} are possible")
        return [str(name) for name in names]
    tops = [
        int(check_labels(arrays[name], name).max(initial=-1))
        for name in ("train_y", "test_y", "train_true")
        if name in arrays
    ]
    return [str(k) for k in range(max(tops) + 1)]


def _split(arrays: dict[str, NDArray[Any]], name: str, classes: list[str]) -> Dataset:
    images, labels = arrays[f"{name}_x"], arrays[f"{name}_y"]
    if images.ndim and labels.ndim and len(images) != len(labels):  # before so many names are made
        raise UsageError(f"the counts differ: {name}_x is {images.shape}, {name}_y {labels.shape}")
    return Dataset.from_arrays(
        images,
        labels,
        true=labels if name == "test" else arrays.get("train_true"),
        classes=classes,
        ids=[f"{name}/{i}" for i in range(labels.size)],
    )


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, which may hold no pickled object."""
    try:
        return parsing.read_arrays(path)
    except FileNotFoundError:
        raise UsageError(f"data.path: there is no file {path}") from None
    except Exception as error:  # zip, zlib and NumPy each have their own for a damaged file
        raise UsageError(f"{path} is not a readable .npz of plain arrays: {error}") from error
