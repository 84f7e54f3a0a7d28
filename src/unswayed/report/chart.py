"""Line charts as self-contained SVG: no dependency, sharp at any size, readable in a diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from unswayed.report.colours import colours_of

PANEL_WIDTH, PANEL_HEIGHT = 340, 240
LEFT, TOP, GAP, BOTTOM, RIGHT = 48, 68, 56, 44, 14


@dataclass(frozen=True)
class Line:
    """A named curve over epochs 1, 2, ...; several seeds make a mean and a band."""

    name: str
    seeds: Sequence[Sequence[float | None]]  # one list of shares in [0, 1] per seed

    def points(self) -> list[tuple[int, float, float, float]]:
        """Return (epoch, lowest, mean, highest) wherever every seed has a value."""
        found = []
        for epoch, values in enumerate(zip(*self.seeds, strict=False), start=1):
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                found.append((epoch, min(known), sum(known) / len(known), max(known)))
        return found


@dataclass(frozen=True)
class Panel:
    """One plot: a title and its lines."""

    title: str
    lines: Sequence[Line]


def chart(panels: Sequence[Panel], title: str) -> str:
    """Return an SVG with the panels side by side, one legend, and percent on the y axis."""
    width = LEFT + RIGHT + len(panels) * PANEL_WIDTH + (len(panels) - 1) * GAP
    height = TOP + PANEL_HEIGHT + BOTTOM
    colours = colours_of(line.name for panel in panels for line in panel.lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    x = LEFT
    for name in colours:
        parts.append(
            f'<line x1="{x}" y1="32" x2="{x + 18}" y2="32" stroke="{colours[name]}" '
            f'stroke-width="2.5"/><text x="{x + 24}" y="36">{escape(name)}</text>'
        )
        x += 48 + 7 * len(name)
    for number, panel in enumerate(panels):
        parts += _panel(panel, LEFT + number * (PANEL_WIDTH + GAP), colours)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, left: float, colours: dict[str, str]) -> list[str]:
    last = max((p[0] for line in panel.lines for p in line.points()), default=1)

    def at(epoch: float, share: float) -> str:
        x = left + PANEL_WIDTH * (epoch - 1) / max(last - 1, 1)
        return f"{x:.1f},{TOP + PANEL_HEIGHT * (1 - share):.1f}"

    parts = [f'<text x="{left}" y="{TOP - 8}" font-weight="600">{escape(panel.title)}</text>']
    for tick in range(0, 101, 20):
        y = TOP + PANEL_HEIGHT * (1 - tick / 100)
        parts.append(
            f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL_WIDTH}" y2="{y:.1f}" '
            f'stroke="#e5e7eb"/><text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" '
            f'fill="#4b5563">{tick} %</text>'
        )
    for epoch in sorted({1, *(round(1 + (last - 1) * i / 4) for i in range(1, 5))}):
        x = at(epoch, 0).partition(",")[0]
        parts.append(
            f'<text x="{x}" y="{TOP + PANEL_HEIGHT + 18}" text-anchor="middle" '
            f'fill="#4b5563">{epoch}</text>'
        )
    parts.append(
        f'<text x="{left + PANEL_WIDTH / 2}" y="{TOP + PANEL_HEIGHT + 36}" text-anchor="middle" '
        'fill="#4b5563">epoch</text>'
    )
    for line in panel.lines:
        points, colour = line.points(), colours[line.name]
        if len(line.seeds) > 1:
            band = [at(e, high) for e, _, _, high in points]
            band += [at(e, low) for e, low, _, _ in reversed(points)]
            parts.append(f'<polygon points="{" ".join(band)}" fill="{colour}" opacity="0.18"/>')
        curve = " ".join(at(e, mean) for e, _, mean, _ in points)
        parts.append(
            f'<polyline points="{curve}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-linejoin="round"><title>{escape(line.name)}</title></polyline>'
        )
    return parts
