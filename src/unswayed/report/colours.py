"""One colour for each method, in every figure of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable

OF_METHOD = {"ce": "#c2410c", "ctrr": "#1d4ed8", "gce": "#047857", "ctrr gce": "#7e22ce"}
"""The methods that figures compare: cross entropy is orange and CTRR blue."""

OTHERS = ("#a16207", "#0e7490", "#be185d", "#4b5563")


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label: that of its method, or one that no method has.

    Of several labels of a method, the shortest has its colour: the others are variants.

    >>> colours_of(["CE", "ce + ctrr (simsiam)", "CE, crops"])
    {'CE': '#c2410c', 'ce + ctrr (simsiam)': '#1d4ed8', 'CE, crops': '#a16207'}
    """
    names = list(dict.fromkeys(labels))
    found: dict[str, str] = {}
    for label in sorted(names, key=len):
        own = OF_METHOD.get(_method(label), "")
        free = [each for each in OTHERS if each not in found.values()] or list(OTHERS)
        found[label] = own if own and own not in found.values() else free[0]
    return {label: found[label] for label in names}


def _method(label: str) -> str:
    """Return the method that a label names; empty if it is another one."""
    words = re.findall(r"[a-z]+", label.lower().replace("eq. 6", "ctrr"))
    named = [name for name in ("ctrr", "gce") if name in words]
    return " ".join(named) or ("ce" if "ce" in words else "")
