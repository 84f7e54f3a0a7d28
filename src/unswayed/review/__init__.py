"""Look at suspicious labels, decide, and keep every decision."""

from __future__ import annotations

from unswayed.review.review import Filter, Progress, Review, Slot, open_review

__all__ = ["Filter", "Progress", "Review", "Slot", "open_review"]
