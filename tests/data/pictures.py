"""Real image files for tests, good ones and broken ones of many kinds."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image


def picture(rng: np.random.Generator, size=(40, 30), mode="RGB") -> Image.Image:
    """Return a smooth random image, (width, height)."""
    coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    return coarse.resize(size, Image.Resampling.BICUBIC).convert(mode)


def class_folders(root: Path, rng: np.random.Generator, counts: dict[str, int], suffix=".png"):
    """Write root/<class>/<number><suffix>."""
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            picture(rng).save(root / name / f"{number:03d}{suffix}")
    return root


def broken(kind: int, rng: np.random.Generator) -> bytes:
    """Return the bytes of an image that cannot be read, one of several kinds."""
    buffer = io.BytesIO()
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    noise.save(buffer, ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")[kind % 6])
    good = buffer.getvalue()
    cut = int(rng.integers(1, len(good) // 3))
    return (
        b"",
        b"\x00" * cut,
        good[:cut],
        rng.bytes(200),
        b"<html>not found</html>",
        good[: len(good) // 2] if kind % 6 in (0, 1) else b"GIF89a",
    )[kind % 6 if kind < 36 else kind // 6 % 6]
