"""Images of samples as small files for a browser, made when they are asked for.

What goes out is always encoded anew: a browser never sees the bytes of a stranger's file.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

from PIL import Image

from unswayed.errors import UsageError
from unswayed.report.thumbnails import fitted
from unswayed.runs import Run

Size = Literal["thumb", "full"]
SIDES: dict[Size, int] = {"thumb": 192, "full": 2048}
"""Pixels that a picture is wide and high at the most."""

TINY = 64
"""Images up to this side are sent without loss: every pixel of them counts."""

KEPT = 64_000_000
"""Bytes of made pictures that are kept in memory."""


class Picture(NamedTuple):
    """The content of an image file."""

    content: bytes
    kind: Literal["image/png", "image/jpeg"]


class Pictures:
    """Makes pictures and keeps the latest ones."""

    def __init__(self, image: Callable[[int, int], Image.Image], kept: int = KEPT) -> None:
        """Take a function from row and side to an image.

        Args:
            image: returns the image of a row; it may be larger than the side.
            kept: bytes to keep.
        """
        self._image, self._most = image, kept
        self._made: OrderedDict[tuple[int, Size], Picture] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, row: int, size: Size) -> Picture:
        """Return a picture; `UsageError` says why there is none."""
        with self._lock:
            made = self._made.get((row, size))
            if made is not None:
                self._made.move_to_end((row, size))
                return made
        try:
            made = encoded(fitted(self._image(row, SIDES[size]), SIDES[size]))
        except Exception as error:  # Pillow raises many kinds for a damaged file
            raise UsageError(f"the image cannot be read: {error}") from error
        with self._lock:
            self._keep((row, size), made)
        return made

    def _keep(self, key: tuple[int, Size], made: Picture) -> None:
        if key not in self._made:
            self._made[key] = made
            self._bytes += len(made.content)
        while self._bytes > self._most and len(self._made) > 1:
            _, old = self._made.popitem(last=False)
            self._bytes -= len(old.content)


def encoded(image: Image.Image) -> Picture:
    """Return an image as PNG if it is tiny, otherwise as JPEG."""
    file = io.BytesIO()
    if max(image.size) <= TINY:
        image.save(file, "PNG")
        return Picture(file.getvalue(), "image/png")
    image.save(file, "JPEG", quality=88)
    return Picture(file.getvalue(), "image/jpeg")


def pictures_of(run: Run) -> Pictures:
    """Return the pictures of a run; refuse to start if the data are not there any more."""
    known = run.provenance.data
    ids = run.samples().ids
    if known.root is not None and not Path(known.root).is_dir():
        raise UsageError(
            f"the images of {run.path} were in {known.root}, which is not there any more; put them "
            "back there, or leave a link in that place"
        )
    if known.root is None:
        run.image(str(ids[0]))  # data in memory are loaded now, and are checked to be the same
    return Pictures(lambda row, side: run.image(str(ids[row]), side))
