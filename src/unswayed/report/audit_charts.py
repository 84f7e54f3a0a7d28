"""Charts of an audit as SVG inside its page, whose style sheet gives the colours.

The charts of `chart` and `heatmap` are files with fixed colours. These are light or dark with the
page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.audits.result import STOP, Audit, Bin, NoiseEstimate
from unswayed.report.text import Name, chance, interval, percent, shortened

WIDTH, HEIGHT = 380, 240
LEFT, TOP, RIGHT, BOTTOM = 44, 12, 14, 40
POINTS = 200
"""Points of a curve."""

MOST_PAIRS = 2000
LETTER, LETTERS, SMALLEST, LARGEST, ROOMY = 7.8, 16, 14.0, 34.0, 24.0
"""Of a heat map: the width of a letter, letters of a name, the smallest and the largest cell, and a
cell with room for a number."""

Vector = NDArray[np.float64]


class Pair(NamedTuple):
    """A given class, a class that is probably true, and how many labels are of that kind."""

    given: int
    true: int
    wrong: float  # expected labels of this kind
    low: float
    high: float

    def words(self, names: Sequence[Name]) -> str:
        """Return a sentence without its full stop."""
        return (
            f"labelled {names[self.given].short}, probably {names[self.true].short}: "
            f"about {self.wrong:,.0f} ({interval(self.low, self.high)})"
        )


def rate_picture(noise: NoiseEstimate) -> str:
    """Return the share of wrong labels as a dot on a line, its interval as a bar."""
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    end = next((step for step in steps if step >= 1.1 * noise.high), 1.0)
    width, left, y = 440, 16, 34

    def x(share: float) -> float:
        return left + (width - 2 * left) * min(share / end, 1.0)

    title = f"{percent(noise.rate)} wrong, between {percent(noise.low)} and {percent(noise.high)}"
    parts = [_open(width, 64, title)]
    parts.append(f'<line class="axis" x1="{left}" y1="{y}" x2="{width - left}" y2="{y}"/>')
    for tick in range(6):
        at = end * tick / 5
        parts.append(
            f'<line class="axis" x1="{x(at):.1f}" y1="{y}" x2="{x(at):.1f}" y2="{y + 5}"/>'
        )
        parts.append(_text(x(at), y + 22, f"{100 * at:g} %"))
    band = max(x(noise.high) - x(noise.low), 2)
    parts.append(
        f'<rect class="band" x="{x(noise.low):.1f}" y="{y - 9}" width="{band:.1f}" height="18" '
        f'rx="4"/><circle class="wrong" cx="{x(noise.rate):.1f}" cy="{y}" r="7"/>'
    )
    middle = min(max(x(noise.rate), 40), width - 40)
    parts.append(_text(middle, y - 16, percent(noise.rate), "strong"))
    return "".join([*parts, "</svg>"])


def pairs(noise: NoiseEstimate, samples: int) -> list[Pair]:
    """Return the pairs of classes with wrong labels, most first; of many classes the first ones."""
    counts = noise.joint * samples
    np.fill_diagonal(counts, 0)
    places = np.flatnonzero(counts.reshape(-1) >= 0.5)
    places = places[np.argsort(-counts.reshape(-1)[places], kind="stable")]
    return list(_pairs(noise, samples, places[:MOST_PAIRS]))


def _pairs(noise: NoiseEstimate, samples: int, places: NDArray[np.int64]) -> Iterator[Pair]:
    bounds = [part.reshape(-1)[places] for part in (noise.joint, noise.joint_low, noise.joint_high)]
    given, true = np.divmod(places, len(noise.joint))
    for i, j, *numbers in zip(given.tolist(), true.tolist(), *bounds, strict=True):
        yield Pair(i, j, *(samples * float(number) for number in numbers))


def heat_map(
    known: Sequence[Pair], rows: Sequence[int], columns: Sequence[int], names: Sequence[Name]
) -> str:
    """Return the pairs as cells that can be chosen, given classes in rows.

    Args:
        known: the pairs.
        rows: given classes that are shown.
        columns: probably true classes that are shown.
        names: of all classes.
    """
    cell = min(max(420 / max(len(rows), len(columns)), SMALLEST), LARGEST)
    words = {k: shortened(names[k].short, LETTERS) for k in (*rows, *columns)}
    left = 12 + LETTER * max(10, *(len(words[k]) for k in rows))
    top = 28 + LETTER * max(len(words[k]) for k in columns)
    width, height = left + max(cell * len(columns), 100) + 2, top + cell * len(rows) + 2
    down, across = ({k: i for i, k in enumerate(keys)} for keys in (rows, columns))
    parts = [_open(width, height, "Expected wrong labels by class pair", role="group")]
    parts.append(_text(left, 12, "probably true →", "start"))
    parts.append(_text(left - 6, top - 6, "labelled ↓", "end"))
    for k, i in down.items():
        parts.append(_text(left - 6, top + (i + 0.5) * cell + 4, words[k], "end"))
    for k, j in across.items():
        place = f"translate({left + (j + 0.5) * cell + 4:.1f} {top - 6:.1f}) rotate(-90)"
        parts.append(f'<text transform="{place}">{escape(words[k])}</text>')
    for k in set(rows) & set(columns):
        at = (left + across[k] * cell, top + down[k] * cell)
        parts.append(_square("same", *at, cell) + "/>")
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{cell * len(columns):.1f}" '
        f'height="{cell * len(rows):.1f}"/>'
    )
    shown = [pair for pair in known if pair.given in down and pair.true in across]
    most = max((pair.wrong for pair in shown), default=1.0)
    for pair in sorted(shown, key=lambda pair: (down[pair.given], across[pair.true])):
        at = (left + across[pair.true] * cell, top + down[pair.given] * cell)
        parts.append(_cell(pair, at, cell, math.sqrt(pair.wrong / most), names))
    return "".join([*parts, "</svg>"])


def _cell(
    pair: Pair, at: tuple[float, float], size: float, strength: float, names: Sequence[Name]
) -> str:
    """Return a cell; its colour follows the square root of its count, so that small ones show."""
    words = escape(pair.words(names))
    number = ""
    if size >= ROOMY:
        kind = "on" if strength > 0.75 else "middle"
        number = _text(at[0] + size / 2, at[1] + size / 2 + 4, _brief(pair.wrong), kind)
    return (
        f'<g class="cell" role="button" tabindex="-1" data-given="{pair.given}" '
        f'data-true="{pair.true}" aria-pressed="false" aria-label="{words}">'
        f"<title>{words}</title>"
        f'{_square("wrong", *at, size)} fill-opacity="{0.08 + 0.92 * strength:.3f}"/>{number}</g>'
    )


def _square(kind: str, x: float, y: float, size: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"'


def _brief(count: float) -> str:
    return f"{count:.0f}" if count < 999.5 else f"{count / 1000:.1f}k" if count < 9950 else "≫"


def precision_picture(found: Audit) -> str:
    """Return which share of the first n labels is expected to be wrong, with the stop line."""
    review = found.to_review
    end = min(len(found), max(round(2.5 * review), 20))
    depth = np.unique(np.linspace(1, end, POINTS).round().astype(np.int64))
    precision, single = found.expected_precision(), np.sort(found.p_wrong)[::-1]
    parts = [_open(WIDTH, HEIGHT, "Expected share of wrong labels by depth")]
    parts += _axes(f"labels looked at, of {len(found):,}", end)

    def line(kind: str, values: Vector) -> str:
        points = (f"{_x(n / end)},{_y(v)}" for n, v in zip(depth, values[depth - 1], strict=True))
        return f'<polyline class="{kind}" points="{" ".join(points)}"/>'

    parts.append(f'<line class="stop" x1="{_x(0)}" y1="{_y(STOP)}" x2="{_x(1)}" y2="{_y(STOP)}"/>')
    stop = review / end
    parts.append(f'<line class="stop" x1="{_x(stop)}" y1="{_y(0)}" x2="{_x(stop)}" y2="{_y(1)}"/>')
    parts.append(line("single", single))
    parts.append(line("curve", precision))
    side = "start" if stop < 0.7 else "end"
    shift = 6 if side == "start" else -6
    parts.append(_text(float(_x(stop)) + shift, TOP + 14, f"stop after {review:,}", side))
    return "".join([*parts, "</svg>"])


def reliability_picture(bins: Sequence[Bin]) -> str:
    """Return what was expected against what was observed, a dot for each bin."""
    parts = [_open(WIDTH, HEIGHT, "Expected against observed")]
    parts += _axes("expected →")
    parts.append(_text(LEFT + 6, TOP + 14, "↑ observed", "start"))
    parts.append(f'<line class="stop" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>')
    most = max(each.count for each in bins)
    for each in bins:
        size = 3 + 7 * math.sqrt(each.count / max(most, 1))
        words = (
            f"expected {chance(each.expected)}, observed {chance(each.observed)}, "
            f"{each.count:,} labels"
        )
        parts.append(
            f'<circle class="dot" cx="{_x(each.expected)}" cy="{_y(each.observed)}" '
            f'r="{size:.1f}"><title>{words}</title></circle>'
        )
    return "".join([*parts, "</svg>"])


def _x(share: float) -> str:
    return f"{LEFT + (WIDTH - LEFT - RIGHT) * share:.1f}"


def _y(share: float) -> str:
    return f"{TOP + (HEIGHT - TOP - BOTTOM) * (1 - share):.1f}"


def _axes(label: str, end: int | None = None) -> list[str]:
    """Return a grid with percent upwards and, if there is no end, to the right too."""
    parts = []
    for tick in range(0, 101, 20):
        y = _y(tick / 100)
        parts.append(f'<line class="grid" x1="{_x(0)}" y1="{y}" x2="{_x(1)}" y2="{y}"/>')
        parts.append(_text(LEFT - 6, float(y) + 4, f"{tick} %", "end"))
    marks = {f"{tick} %": tick / 100 for tick in range(0, 101, 20)}
    if end is not None:
        step = _round(end / 5)
        marks = {f"{tick:,}": tick / end for tick in range(0, end + 1, step)}
    for words, share in marks.items():
        kind = "end" if share > 0.97 else "middle"
        parts.append(_text(float(_x(share)), HEIGHT - BOTTOM + 16, words, kind))
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(_text(middle, HEIGHT - 6, label))
    return parts


def _round(number: float) -> int:
    """Return 1, 2 or 5 times a power of ten, at least so large."""
    power: int = 10 ** max(math.floor(math.log10(max(number, 1))), 0)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= number)


def _open(width: float, height: float, title: str, role: str = "img") -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="{role}" aria-label="{escape(title)}">'
    )


def _text(x: float, y: float, words: str, kind: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'
