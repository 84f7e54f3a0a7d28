"""The first labels of an audit as one picture, for a page, a talk or a message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from unswayed.audits.result import Audit
from unswayed.errors import UsageError
from unswayed.files import atomic
from unswayed.report.text import chance, shortened
from unswayed.report.thumbnails import Picture, fitted

SIDE, GAP, LINE, FRAME, COLUMNS = 112, 12, 15, 4, 8
INK, SOFT, PAPER, EMPTY = "#1f2937", "#4b5563", "#ffffff", "#e5e7eb"
HIT, MISS = "#047857", "#b91c1c"
LEGEND = ((HIT, "really wrong"), (MISS, "was right"))

Font = ImageFont.ImageFont | ImageFont.FreeTypeFont


def contact_sheet(
    found: Audit,
    path: str | Path,
    *,
    image: Picture,
    count: int = 40,
    true: NDArray[np.integer] | None = None,
) -> None:
    """Draw the most suspicious labels as a PNG.

    >>> import unswayed
    >>> from unswayed.report.contact_sheet import contact_sheet
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> found = unswayed.audit(run)
    >>> contact_sheet(found, "worst.png", image=lambda row: run.image(found.ids[row]))

    Args:
        found: the audit.
        path: of the PNG file.
        image: returns the image of a row, or None.
        count: labels that are drawn.
        true: (N,) true labels, where somebody knows them; a frame then tells whether the label was
            really wrong.
    """
    if true is not None and len(true) != len(found):
        raise UsageError(f"there are {len(found)} labels and {len(true)} true ones")
    if count < 1:
        raise UsageError(f"count must be at least 1, not {count}")
    rows = found.order[:count].tolist()
    columns = min(COLUMNS, len(rows))
    cell, top = (SIDE + GAP, SIDE + 2 * LINE + 6 + GAP), GAP if true is None else GAP + 24
    size = (GAP + columns * cell[0], top + -(-len(rows) // columns) * cell[1])
    sheet = Image.new("RGB", (max(size[0], 240), size[1]), PAPER)
    draw, font = ImageDraw.Draw(sheet), _font()
    if true is not None:
        _legend(draw, font)
    for place, row in enumerate(rows):
        at = (GAP + place % columns * cell[0], top + place // columns * cell[1])
        frame = None
        if true is not None:
            frame = HIT if true[row] != found.given[row] else MISS
        _picture(sheet, draw, image(row), at, frame)
        _words(draw, font, found, row, (at[0], at[1] + SIDE + 2))
    with atomic(Path(path)) as temporary:
        sheet.save(temporary, "PNG")


def _legend(draw: ImageDraw.ImageDraw, font: Font) -> None:
    for number, (colour, words) in enumerate(LEGEND):
        x = GAP + 110 * number
        draw.rectangle((x, GAP, x + 14, GAP + 14), outline=colour, width=FRAME)
        draw.text((x + 20, GAP), words, INK, font)


def _picture(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    image: Image.Image | None,
    at: tuple[int, int],
    frame: str | None,
) -> None:
    """Draw a picture in the middle of its place; a small one is enlarged."""
    x, y = at
    draw.rectangle((x, y, x + SIDE - 1, y + SIDE - 1), EMPTY)
    room = SIDE - (2 * FRAME if frame else 0)
    if image is not None:
        small = fitted(image, room)
        scale = room / max(small.size)
        width, height = (max(round(scale * side), 1) for side in small.size)
        small = small.resize((width, height), Image.Resampling.BICUBIC)
        sheet.paste(small, (x + (SIDE - width) // 2, y + (SIDE - height) // 2))
    if frame:
        draw.rectangle((x, y, x + SIDE - 1, y + SIDE - 1), outline=frame, width=FRAME)


def _words(
    draw: ImageDraw.ImageDraw, font: Font, found: Audit, row: int, at: tuple[int, int]
) -> None:
    """Write `given -> suggested` and P(wrong) below a picture."""
    given, suggested = (str(found.classes[k[row]]) for k in (found.given, found.suggested))
    for length in range(24, 0, -1):
        line = f"{shortened(given, length)} -> {shortened(suggested, length)}"
        if length == 1 or draw.textlength(_drawable(line, font), font) <= SIDE:
            break
    draw.text(at, _drawable(line, font), INK, font)
    said = f"{chance(float(found.p_wrong[row]))} wrong"
    draw.text((at[0], at[1] + LINE), _drawable(said, font), SOFT, font)


def _font() -> Font:
    """Return a font with many alphabets if the system has one; others show an empty box."""
    for name in ("DejaVuSans.ttf", "arial.ttf"):
        try:
            return ImageFont.truetype(name, 11)
        except OSError:
            continue
    return ImageFont.load_default(12)


def _drawable(words: str, font: Font) -> str:
    """Return words that the font takes: that of a Pillow without FreeType has Latin letters."""
    if isinstance(font, ImageFont.FreeTypeFont):
        return words
    return words.encode("latin-1", "replace").decode("latin-1")
