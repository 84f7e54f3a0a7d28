"""How far the classifier can be trusted to choose pairs."""

from __future__ import annotations

from matplotlib.figure import Figure

from reproduction.figures import Measured, drawing
from reproduction.figures.pairs import FORMS, curve, measure
from unswayed.report.colours import colours_of

__all__ = ["draw", "measure"]


def draw(measured: Measured) -> Figure:
    """Draw the precision of the selected pairs, and how many there are."""
    drawn, (first, second) = drawing.panels(2)
    for label, colour in colours_of(FORMS).items():
        drawing.band(first, curve(measured, label, "precision"), f"trained with {label}", colour)
        drawing.band(second, curve(measured, label, "selected"), f"trained with {label}", colour)
    drawing.finish(first, "pairs of one true class", "share of the selected pairs / %")
    drawing.finish(second, "selected pairs", "share of all pairs / %")
    drawing.legend(first)
    return drawn
