"""Labels from a file in place of those of a data set: the option `data.corrected`.

The file is a table of `unswayed export --as labels`: id, label, and true_label where it is known.
An empty label leaves the sample out. Other columns are for people.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unswayed.data.dataset import Dataset, Splits
from unswayed.data.listing import some
from unswayed.errors import UsageError
from unswayed.registry import did_you_mean


class Entry(NamedTuple):
    """A line of the file."""

    line: int
    label: str  # empty if the sample is left out
    true: str | None  # None if the file has no such column


class LabelTable(NamedTuple):
    """The labels of a file by id."""

    file: Path
    entries: dict[str, Entry]

    def applied_to(self, splits: Splits) -> Splits:
        """Return the data with these training labels; test data stay as they are."""
        return Splits(relabelled(splits.train, self), splits.test)


def relabelled(data: Dataset, table: LabelTable) -> Dataset:
    """Return the samples that have a label in a table, with that label.

    Args:
        data: the samples; class names keep their order.
        table: has a line for every one of them, and for no other but unreadable ones.
    """
    _check_ids(data, table)
    mine = [table.entries[name] for name in data.ids]
    rows = np.flatnonzero([entry.label != "" for entry in mine])
    kept = [mine[row] for row in rows]
    chosen = data if len(rows) == len(data) else data.select(rows)
    given = _numbers([(e.line, e.label) for e in kept], data.classes, table.file, "label")
    true = chosen.true
    if kept and kept[0].true is not None:
        words = [(e.line, e.true or "") for e in kept]
        true = _numbers(words, data.classes, table.file, "true_label")
    return replace(chosen, given=given, true=true)


def read_labels(path: str | Path) -> LabelTable:
    """Return the labels of a file; whatever is wrong with it is said in one line."""
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            return LabelTable(file, _read(text, file))
    except FileNotFoundError:
        raise UsageError(f"data.corrected: there is no file {file}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"data.corrected: {file} cannot be read: {error}") from error


def _read(text: Iterable[str], file: Path) -> dict[str, Entry]:
    table = csv.DictReader(text)
    names = list(table.fieldnames or ())
    for wanted in ("id", "label"):
        if wanted not in names:
            raise UsageError(
                f"{file} has no column {wanted!r}; its columns are: {some(names) or 'none'}. Make "
                "it with: unswayed export RUN --as labels"
            )
    found: dict[str, Entry] = {}
    for row in table:
        line = table.line_num
        if None in row or None in row.values():
            raise UsageError(f"{file}, line {line}: it has not as many columns as the heading")
        if row["id"] in found:
            raise UsageError(f"{file}, line {line}: the id {row['id']!r} stands there twice")
        found[row["id"]] = Entry(line, row["label"], row.get("true_label"))
    return found


def _check_ids(data: Dataset, table: LabelTable) -> None:
    file, entries = table
    missing = [name for name in data.ids if name not in entries]
    if missing:
        raise UsageError(
            f"{file} has no line for {len(missing)} of the {len(data)} samples, the first of them "
            f"{missing[0]!r}; was it made for these data?"
        )
    known = {*data.ids, *data.skipped}
    for name, entry in entries.items():
        if name not in known:
            raise UsageError(
                f"{file}, line {entry.line}: no sample is called {name!r}; was it made for these "
                "data?"
            )


def _numbers(
    words: Sequence[tuple[int, str]], classes: Sequence[str], file: Path, what: str
) -> np.ndarray:
    number = {name: k for k, name in enumerate(classes)}
    for line, name in words:
        if name not in number:
            hint = did_you_mean(name, classes)
            raise UsageError(f"{file}, line {line}: unknown {what} {name!r}; {hint}")
    return np.array([number[name] for _, name in words], dtype=np.int64)
