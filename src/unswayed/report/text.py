"""Names and ids come from strangers and may hold anything: make them short, harmless text."""

from __future__ import annotations

from typing import NamedTuple

from unswayed.errors import is_odd

LONGEST = 200
"""Characters of a name that a page keeps, where it shows the whole name."""


class Name(NamedTuple):
    """A text as it is shown, and the whole of it as far as a page keeps it."""

    short: str
    full: str


def named(text: str, length: int, *, keep_end: bool = False) -> Name:
    """Return a text in short and in full.

    Args:
        text: anything.
        length: characters of the short form.
        keep_end: cut out the middle, because the end of a path says the most.
    """
    return Name(shortened(text, length, keep_end=keep_end), shortened(text, LONGEST))


def shortened(text: str, length: int, *, keep_end: bool = False) -> str:
    """Return at most so many printable characters; `…` stands for those that were cut.

    Control characters, marks of direction and broken Unicode, as odd file names have it, become
    `�`.
    """
    end = 2 * length // 3 if keep_end else 0
    if len(text) <= length:
        kept = text
    else:
        kept = f"{text[: length - 1 - end]}…{text[len(text) - end :] if end else ''}"
    return "".join("�" if is_odd(letter) else letter for letter in kept)


def percent(share: float) -> str:
    """Return `17 %`, `1.7 %` or `0.17 %`: two digits."""
    return f"{100 * share:.{digits(share)}f} %"


def digits(share: float) -> int:
    """Return how many decimals a share needs as a percentage."""
    return 0 if share >= 0.0995 or share <= 0 else 1 if share >= 0.00995 else 2


def chance(p: float) -> str:
    """Return a probability as whole percent, never as certainty."""
    if p > 0.99:
        return "> 99 %"
    return f"{100 * p:.0f} %" if p >= 0.01 else "< 1 %"


def interval(low: float, high: float) -> str:
    """Return `510 to 590`: a range of counts."""
    return f"{low:,.0f} to {high:,.0f}"
