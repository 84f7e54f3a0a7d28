"""Decode image files to uint8 tensors, as a person would see them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from PIL import Image, ImageOps
from PIL.ImageFile import ImageFile

from unswayed.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

MAX_PIXELS = 100_000_000
"""Larger images are refused before they are decoded: a small file can unpack to gigabytes."""

FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "WEBP", "TIFF", "PPM")
"""What the suffixes of `listing` stand for. Pillow would also run programs, such as EPS files."""

Resize = Literal["crop", "squash"]


def decode(
    path: str | Path, channels: int, size: tuple[int, int], resize: Resize = "crop"
) -> Tensor:
    """Return the first frame of an image file as uint8 (C, H, W), upright, in gray or RGB.

    Args:
        path: the file.
        channels: 1 for gray, 3 for RGB.
        size: (H, W) of the result.
        resize: "crop" keeps the proportions and cuts the middle out, "squash" does not.

    Raises:
        UsageError: names the file and what is wrong with it.
    """
    mode, (height, width) = ("L" if channels == 1 else "RGB"), size
    try:
        image = open_image(path, mode, (width, height))
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except Exception as error:  # Pillow raises many kinds for a damaged file
        raise UsageError(f"{path} is not a readable image: {error}") from error
    if image.size != (width, height):
        if resize == "crop":
            image = ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)
        else:
            image = image.resize((width, height), Image.Resampling.BILINEAR)
    import torch  # not needed to look at files

    pixels = np.array(image, dtype=np.uint8)
    return torch.from_numpy(pixels[None] if channels == 1 else pixels.transpose(2, 0, 1).copy())


@contextmanager
def opened(path: str | Path) -> Iterator[ImageFile]:
    """Open an image file of a usual format and size; its pixels are not decoded yet.

    Raises:
        Exception: whatever Pillow raises for a file that is no image.
    """
    if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe would keep us waiting
        raise ValueError("it is no file")
    with Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{image.width}×{image.height} pixels are too many")
        yield image


def open_image(path: str | Path, mode: str, least: tuple[int, int]) -> Image.Image:
    """Return an image of 8 bits a channel, upright; a JPEG may be shrunk to no less than `least`.

    Raises:
        Exception: whatever Pillow raises for a file that it cannot read to its end.
    """
    with opened(path) as file:
        file.draft(mode, least)  # a JPEG is shrunk while it is decoded
        return plain(ImageOps.exif_transpose(file), mode)


def plain(image: Image.Image, mode: str) -> Image.Image:
    """Return an image in mode L or RGB, with transparency put on white."""
    if image.mode.startswith(("I", "F")):  # 16 bits and more: the usual range is 0..65535
        levels = np.asarray(image)
        scale = 1.0 if levels.max(initial=0) <= 255 else 255 / 65535
        small = np.empty(levels.shape, np.uint8)
        for row, line in enumerate(levels):  # a whole image of doubles would take gigabytes
            small[row] = np.clip(line.astype(np.float64) * scale, 0, 255).round()
        image = Image.fromarray(small)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert(mode)
