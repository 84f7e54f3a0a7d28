"""Suggestions for unknown options."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from unswayed.report.catalogue import Kind, written


def hint(unknown: str, words: Sequence[str], options: Sequence[str], *, overrides: bool) -> str:
    """Return what to write in place of an unknown option; empty if that is unclear.

    Args:
        unknown: the option as it was written, such as `--epochs` or `--epochs=3`.
        words: all arguments of the command.
        options: the options of the verb, such as `--run`.
        overrides: whether the verb takes overrides such as `train.epochs=3`.
    """
    option, equals, value = unknown.partition("=")
    if not option.startswith("--"):
        return ""
    if close := difflib.get_close_matches(option, options, n=1, cutoff=0.7):
        return f"did you mean {close[0]}?"
    if not overrides:
        return ""
    if not equals:
        value = next((word for word in _after(unknown, words) if not word.startswith("-")), "VALUE")
    key = _key(option.removeprefix("--").replace("-", "_"), written())
    if key is None:
        return "options of a recipe are written section.key=value, such as train.epochs=3"
    return f"options of a recipe are written {key}={value}"


def _after(word: str, words: Sequence[str]) -> Sequence[str]:
    """Return the argument that follows another, if there is one."""
    place = list(words).index(word) + 1
    return words[place : place + 1]


def _key(name: str, kinds: Sequence[Kind]) -> str | None:
    """Return `train.epochs` for `epochs`, `loss.name` for `loss`."""
    if name == "method":
        return name
    named = [kind for kind in kinds if kind.name == name and all(e.name for e in kind.entries)]
    if named:
        return f"{named[0].places[0]}.name"
    # The section `train` comes last, and what it has is what people mean.
    for kind in (kinds[-1], *kinds):
        if any(option.name == name for entry in kind.entries for option in entry.options):
            return f"{kind.places[0]}.{name}"
    return None
