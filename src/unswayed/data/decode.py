"""Image files to uint8 tensors, as a person would see them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from unswayed.errors import UsageError


def decode(path: str | Path, channels: int, size: tuple[int, int]) -> Tensor:
    """Return an image file as uint8 (C, H, W): upright, gray or RGB, resized to (H, W).

    Raises:
        UsageError: names the file and what is wrong with it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as file:
                image = _plain(ImageOps.exif_transpose(file), "L" if channels == 1 else "RGB")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except Exception as error:  # Pillow raises many kinds for a damaged file
        raise UsageError(f"{path} is not a readable image: {error}") from error
    if image.size != (size[1], size[0]):
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.array(image, dtype=np.uint8)
    return torch.from_numpy(pixels[None] if channels == 1 else pixels.transpose(2, 0, 1).copy())


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """Return 8 bits a channel without transparency, which is laid on white."""
    if image.mode.startswith(("I", "F")):  # 16 bits and more: the usual range is 0..65535
        levels = np.asarray(image, dtype=np.float64)
        scale = 1.0 if levels.max(initial=0) <= 255 else 255 / 65535
        image = Image.fromarray(np.clip(levels * scale, 0, 255).round().astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert(mode)
