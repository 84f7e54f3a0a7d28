"""Small pictures inside a page: each decoded once, all within a number of bytes."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Collection

from PIL import Image, ImageOps

from unswayed.data.decode import plain
from unswayed.errors import UsageError

LARGE, SMALL = 96, 48
"""Sides of a picture in pixels: of a sample that is shown, and of one that is beside it."""

QUALITY = 80
HOPELESS = 5
"""If the first so many pictures cannot be read, the others are not tried."""

Picture = Callable[[int], Image.Image | None]


class Thumbnails:
    """Pictures of rows as data URIs."""

    def __init__(self, image: Picture | None, large: Collection[int]) -> None:
        """Take a function from rows to images, and the rows that are shown large."""
        self._image, self._large = image, frozenset(large)
        self.made: dict[int, str] = {}
        self.failed: dict[int, str] = {}  # row -> why
        self.spent = 0  # bytes

    def add(self, row: int) -> None:
        """Make the picture of a row, if that was not tried yet."""
        hopeless = not self.made and len(self.failed) >= HOPELESS
        if self._image is None or row in self.made or row in self.failed or hopeless:
            return
        try:
            image = self._image(row)
            if image is None:
                self.failed[row] = "there is no image"
                return
            uri = data_uri(image, LARGE if row in self._large else SMALL)
        except (UsageError, OSError, ValueError) as error:  # one bad file is no reason to stop
            self.failed[row] = str(error)
            return
        self.made[row] = uri
        self.spent += len(uri)


def data_uri(image: Image.Image, side: int) -> str:
    """Return an image as a JPEG inside a URI, at most `side` pixels wide and high."""
    file = io.BytesIO()
    fitted(image, side).save(file, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def fitted(image: Image.Image, side: int) -> Image.Image:
    """Return an image in RGB, upright, at most `side` pixels wide and high."""
    small = plain(ImageOps.exif_transpose(image), "RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small
