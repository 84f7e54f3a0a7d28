"""Convert data sets of PyTorch, torchvision and Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from PIL import Image, ImageOps

from unswayed.data.dataset import Dataset
from unswayed.data.progress import tell
from unswayed.errors import UsageError


class MapStyle(Protocol):
    """A data set like `torch.utils.data.Dataset`: a length, and (image, label) by row."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any: ...


def from_torch(
    source: MapStyle,
    *,
    size: int | None = None,
    classes: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
) -> Dataset:
    """Read a map-style data set of (image, label) into memory.

    Images may be PIL images, uint8 arrays or tensors, or float tensors in [0, 1]. Leave random
    transforms out: they would be applied only once.

    >>> from PIL import Image
    >>> from unswayed.data import from_torch
    >>> photos = [(Image.new("RGB", (80, 60)), 0), (Image.new("RGB", (60, 80)), 1)]
    >>> data = from_torch(photos, size=64, classes=["cat", "dog"])
    >>> data.image_size, data.given.tolist()
    ((64, 64), [0, 1])

    Args:
        source: the data set.
        size: side of the square images; needed if they differ in size.
        classes: class names; those of `source.classes` if it has them.
        ids: names of the samples; their numbers if not given.
    """
    images, labels = [], []
    for row in range(len(source)):
        image, label = source[row][:2]
        images.append(_pixels(image, size, row))
        labels.append(int(label))
        if row % 1000 == 0:
            tell("reading images", row, len(source))
    names = classes if classes is not None else getattr(source, "classes", None)
    return Dataset.from_arrays(_stack(images), np.array(labels, int), classes=names, ids=ids)


def from_huggingface(
    source: Any, *, image: str = "image", label: str = "label", size: int | None = None
) -> Dataset:
    """Read one split of a Hugging Face data set with an image and a class-label column."""
    for column in (image, label):
        if column not in source.features:
            raise UsageError(f"no column {column!r}; there are: {', '.join(source.features)}")
    names = getattr(source.features[label], "names", None)

    class Rows:
        def __len__(self) -> int:
            return len(source)

        def __getitem__(self, row: int, /) -> Any:
            found = source[row]
            return found[image], found[label]

    return from_torch(Rows(), size=size, classes=names)


def _pixels(image: Any, size: int | None, row: int) -> np.ndarray:
    """Return (H, W) or (H, W, C) uint8."""
    if isinstance(image, Image.Image):
        image = ImageOps.exif_transpose(image)
        picture = image.convert("L" if image.mode in ("1", "L", "I", "F", "I;16") else "RGB")
    else:
        array = np.asarray(image)
        if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[-1] not in (1, 3):
            array = array.transpose(1, 2, 0)
        if np.issubdtype(array.dtype, np.floating):
            if array.min() < 0 or array.max() > 1:
                raise UsageError(f"image {row}: floating-point pixels must lie in [0, 1]")
            array = (array * 255).round().astype(np.uint8)
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            raise UsageError(f"image {row}: {array.dtype} of shape {array.shape} is no image")
        picture = Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array)
    if size is not None and picture.size != (size, size):
        picture = ImageOps.fit(picture, (size, size), Image.Resampling.BILINEAR)
    return np.asarray(picture)


def _stack(images: list[np.ndarray]) -> np.ndarray:
    shapes = {image.shape[:2] for image in images}
    if len(shapes) > 1:
        raise UsageError(f"the images differ in size ({sorted(shapes)[:3]} ...); give size=")
    if len({image.ndim for image in images}) > 1:  # gray among colour
        images = [i if i.ndim == 3 else np.repeat(i[:, :, None], 3, axis=2) for i in images]
    return np.stack(images) if images else np.zeros((0, 1, 1), np.uint8)
