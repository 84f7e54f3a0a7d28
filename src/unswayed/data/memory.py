"""Data that a Python program gave to `unswayed.train`."""

from __future__ import annotations

from unswayed.data import Splits, register
from unswayed.errors import UsageError


@register("memory")
def memory() -> Splits:
    """Data given from Python with `train(..., data=...)`; a recipe alone cannot bring them back."""
    raise UsageError("these data were given from Python: pass them again, with data=...")
