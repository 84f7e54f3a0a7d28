"""List what a recipe can name: components, their options, defaults and papers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from unswayed.errors import UsageError
from unswayed.report.catalogue import Entry, Kind, catalogue, written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    names = ", ".join(kind.name for kind in written())
    parser.add_argument("kind", metavar="KIND", nargs="?", help=names)


def run(args: argparse.Namespace) -> int:
    """Print one kind, or all."""
    kinds = catalogue()
    for number, kind in enumerate(_asked_for(args.kind, kinds) if args.kind else kinds):
        print(("\n" if number else "") + "\n".join(_lines(kind)))
    return 0


def _asked_for(word: str, kinds: list[Kind]) -> list[Kind]:
    """Return the kinds with this name, singular or plural."""
    forms = {word, f"{word}s", word.removesuffix("s"), word.removesuffix("es")}
    found = [kind for kind in kinds if {kind.name, kind.name.partition(".")[0]} & forms]
    if not found:
        from unswayed.registry import did_you_mean

        hint = did_you_mean(word, [kind.name for kind in kinds])
        raise UsageError(f"there is nothing called {word!r}; {hint}")
    return found


def _lines(kind: Kind) -> Iterator[str]:
    yield " and ".join(f"[{place}]" for place in kind.places)
    for entry in kind.entries:
        if entry.name:
            paper = f" ({entry.paper})" if entry.paper else ""
            yield f"  {entry.name}: {entry.about}{paper}"
        yield from _details(entry, "      " if entry.name else "  ")


def _details(entry: Entry, indent: str) -> Iterator[str]:
    if entry.presets:
        yield f"{indent}presets: {', '.join(entry.presets)}"
    for option in entry.options:
        yield f"{indent}{option.name} = {option.default}{'  # ' * bool(option.help)}{option.help}"
