"""No contrastive term: the label loss alone."""

from __future__ import annotations

from unswayed.frameworks import register


@register("none")
def none() -> None:
    """No contrastive term; no strong views are made."""
