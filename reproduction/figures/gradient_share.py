"""The paper's central argument, measured: who dominates the gradient of the contrast?"""

from __future__ import annotations

from matplotlib.figure import Figure

from reproduction.figures import Measured, drawing
from reproduction.figures.pairs import curve, measure
from unswayed.report.colours import colours_of

__all__ = ["draw", "measure"]


def draw(measured: Measured) -> Figure:
    """Draw the share of wrong pairs in the gradient of each network, and of one under both forms.

    The second panel has the same embeddings twice: it shows what the logarithm alone changes.
    """
    drawn, (first, second) = drawing.panels(2)
    shares = {"eq. 4": "wrong_inner", "eq. 6": "wrong_log"}
    for label, colour in colours_of(shares).items():
        own = shares[label]
        drawing.band(first, curve(measured, label, own), f"trained with {label}", colour)
        drawing.band(second, curve(measured, "eq. 6", own), f"under {label}", colour)
    drawing.finish(first, "gradient from wrong pairs", "share of all pulls / %")
    drawing.finish(second, "the network trained with eq. 6")
    for axes in (first, second):
        axes.set_ylim(bottom=0)
        drawing.legend(axes)
    return drawn
