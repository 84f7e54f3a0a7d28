"""Projector and predictor, in the two styles that papers and published codes use.

"simsiam": no biases, and a last batch norm without affine parameters, which keeps SimSiam from
collapsing. "plain": biases, and a bare linear output, as in CTRR's published BYOL code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import nn

HeadStyle = Literal["simsiam", "plain"]


def projector(in_dim: int, widths: Sequence[int], style: HeadStyle) -> nn.Sequential:
    """Return an MLP with batch norm and ReLU between its layers."""
    bias = style == "plain"
    layers: list[nn.Module] = []
    for width in widths[:-1]:
        layers += [nn.Linear(in_dim, width, bias=bias), nn.BatchNorm1d(width), nn.ReLU()]
        in_dim = width
    layers.append(nn.Linear(in_dim, widths[-1], bias=bias))
    if style == "simsiam":
        layers.append(nn.BatchNorm1d(widths[-1], affine=False))
    return nn.Sequential(*layers)


def predictor(dim: int, hidden: int, style: HeadStyle) -> nn.Sequential:
    """Return the two-layer bottleneck dim -> hidden -> dim, without norm on its output."""
    return nn.Sequential(
        nn.Linear(dim, hidden, bias=style == "plain"),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, dim),
    )
