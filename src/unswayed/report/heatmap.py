"""Transition matrices as self-contained SVG, in the style of the charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

RIGHT_COLOUR, WRONG_COLOUR = "#1d4ed8", "#c2410c"
SIDE, SMALLEST, LARGEST = 480, 5, 44  # of the grid and of its cells, in pixels
TOP, MARGIN, LETTER = 54, 14, 7
LEGEND = "rows: class; columns: label given; colour: share of the class, blue right, red wrong"
LEGIBLE, ROOMY = 12, 30  # cells from here on have room for a name beside them, a number inside


def heatmap(matrix: NDArray[np.float64], classes: Sequence[str], title: str) -> str:
    """Return an SVG of a (K, K) matrix of shares, a row for each true class.

    The colour follows the square root of a share, so that errors spread over many classes show.
    """
    k = len(classes)
    cell = min(max(SIDE / k, SMALLEST), LARGEST)
    names = [name if len(name) <= 20 else f"{name[:19]}…" for name in classes]
    room = 12 + LETTER * max(map(len, names))
    left, top = MARGIN + room, TOP + room
    written = max(LETTER * len(LEGEND), 9 * len(title))
    width = max(left + k * cell, MARGIN + written) + MARGIN
    height = top + k * cell + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="22" font-size="14" font-weight="600">{escape(title)}</text>',
        f'<text x="{MARGIN}" y="42" fill="#4b5563">{LEGEND}</text>',
        *_names(names, cell, left, top),
        f'<rect x="{left}" y="{top}" width="{k * cell:.1f}" height="{k * cell:.1f}" fill="none" '
        'stroke="#9ca3af"/>',
    ]
    for i, j in zip(*np.nonzero(matrix), strict=True):
        at = (left + j * cell, top + i * cell)
        parts += _cell(float(matrix[i, j]), at, cell, f"{classes[i]} → {classes[j]}", i == j)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _names(names: Sequence[str], cell: float, left: float, top: float) -> list[str]:
    """Return the names along both sides; if the squares are small, only every n-th."""
    step = 1 if cell >= LEGIBLE else math.ceil(LEGIBLE / cell)
    parts = []
    for k in range(0, len(names), step):
        middle = (k + 0.5) * cell + 4
        parts.append(
            f'<text x="{left - 6}" y="{top + middle:.1f}" text-anchor="end">'
            f"{escape(names[k])}</text>"
        )
        parts.append(
            f'<text transform="translate({left + middle:.1f} {top - 6}) rotate(-90)">'
            f"{escape(names[k])}</text>"
        )
    return parts


def _cell(share: float, at: tuple[float, float], size: float, name: str, right: bool) -> list[str]:
    x, y = at
    colour, strength = RIGHT_COLOUR if right else WRONG_COLOUR, math.sqrt(share)
    percent = f"{100 * share:.1f}"
    parts = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}" fill="{colour}" '
        f'fill-opacity="{strength:.3f}"><title>{escape(name)}: {percent} %</title></rect>'
    ]
    if size >= ROOMY:
        ink = "#ffffff" if strength > 0.6 else "#1f2937"
        parts.append(
            f'<text x="{x + size / 2:.1f}" y="{y + size / 2 + 4:.1f}" text-anchor="middle" '
            f'font-size="11" fill="{ink}" pointer-events="none">{percent}</text>'
        )
    return parts
