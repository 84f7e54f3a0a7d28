"""What a page needs to write decisions down: exact ids and class names, which it shows shortened.

The page writes the lines of `unswayed.review.journal`. What would make a line that nobody can read
is left out, and so is what would make the page too large. Labels without an id are shown, and
cannot be decided there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from unswayed.audits.result import Audit

LONGEST = 6000
"""Bytes of an id or a name as JSON; a line of the journal holds three of them."""

ID_ROOM, CLASS_ROOM = 1_000_000, 500_000
"""Bytes of all ids and of all names."""


def decision_data(found: Audit, rows: Sequence[int]) -> dict[str, Any] | None:
    """Return what the page's script is told, or None if nothing can be decided.

    Args:
        found: the audit.
        rows: of the cards, in order.
    """
    ids = list(_fitting((str(found.ids[row]) for row in rows), ID_ROOM))
    if all(name is None for name in ids):
        return None
    used = np.concatenate([found.given[rows], found.suggested[rows]]).tolist()
    order = list(dict.fromkeys([*sorted(used), *range(len(found.classes))]))
    names = _fitting((str(found.classes[k]) for k in order), CLASS_ROOM)
    classes = {k: name for k, name in zip(order, names, strict=True) if name is not None}
    return {
        "digest": digest(found),
        "samples": [list(pair) for pair in zip(rows, ids, strict=True)],
        "classes": classes,
    }


def script_json(value: Any) -> Markup:
    """Return JSON that can stand inside a `<script>`: ASCII in which no tag can begin."""
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(text)


def digest(found: Audit) -> str:
    """Return a name of the audit, by which a browser tells its decisions from others."""
    made = hashlib.blake2b(digest_size=16)
    for names in (found.ids, found.classes):
        made.update(json.dumps([str(name) for name in names]).encode())
    for numbers in (found.given, found.suggested, found.p_wrong):
        made.update(np.ascontiguousarray(numbers).tobytes())
    return made.hexdigest()


def _fitting(texts: Iterable[str], room: int) -> Iterator[str | None]:
    """Yield texts as a review writes them, and None for those that are too long or too many."""
    for text in texts:
        plain = text.encode("utf-8", "backslashreplace").decode()  # as in `review.verdicts`
        size = len(script_json(plain))
        if size > min(LONGEST, room):
            yield None
        else:
            room -= size
            yield plain
