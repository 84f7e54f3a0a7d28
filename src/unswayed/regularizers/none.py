"""No contrastive term: the label loss alone."""

from __future__ import annotations

from unswayed.regularizers import register


@register("none")
def none() -> None:
    """No contrastive term; the framework is left out too."""
