"""Read tables that name image files and their labels."""

from __future__ import annotations

import csv
import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from unswayed.data.layout import TEST, TRAIN, VALIDATION
from unswayed.data.listing import Listing
from unswayed.data.texts import are_distinct
from unswayed.errors import UsageError
from unswayed.parsing import parse_object

PATHS = ("path", "file_name", "image")
OPTIONAL = ("true_label", "split", "id")
Row = Mapping[str, Any]
PLAIN = re.compile(r"(?:[^/\\.][^/\\]*/)*[^/\\.][^/\\]*")
"""A path that is written the shortest way and goes down only; most are."""

BATCH = 1024
"""Rows of a Parquet file that are in memory at a time."""


def rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a table as dictionaries."""
    reader = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}.get(
        file.suffix.lower()
    )
    if reader is None:
        raise UsageError(f"data.path: {file} is none of .csv, .tsv, .jsonl, .parquet")
    try:
        yield from reader(file)
    except FileNotFoundError:
        raise UsageError(f"data.path: there is no file {file}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _csv(file: Path) -> Iterator[Row]:
    with file.open(newline="", encoding="utf-8-sig") as text:
        table = csv.DictReader(text, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        _check_columns(table.fieldnames or (), file)
        for number, row in enumerate(table, start=1):
            if None in row or None in row.values():
                raise UsageError(f"{file}, row {number}: it has not as many columns as the heading")
            yield row


def _json_lines(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig") as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            try:
                row = parse_object(line)
            except ValueError as error:
                raise UsageError(f"{file}, row {number}: {error}") from error
            _check_columns(row, f"{file}, row {number}")
            yield row


def _parquet(file: Path) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'unswayed[parquet]'") from None
    known = (*PATHS, "label", *OPTIONAL)
    try:
        with pyarrow.parquet.ParquetFile(file) as table:
            names = table.schema_arrow.names
            _check_columns(names, file)
            # A few bytes may stand for a billion equal rows: their ids are refused as they come.
            for batch in table.iter_batches(BATCH, columns=[n for n in names if n in known]):
                yield from batch.to_pylist()
    except (UsageError, OSError):
        raise
    except Exception as error:  # dates, decimals and texts each have their own
        raise UsageError(f"{file} cannot be read: {error}") from error


def _check_columns(columns: Iterable[Any], where: object) -> None:
    """Refuse a table without paths or labels; the error says what it has and should have."""
    names = list(map(str, columns))
    if not any(name in names for name in PATHS):
        lacks, wanted = "'path' (or file_name, or image)", "path"
    elif "label" not in names:
        lacks, wanted = "'label'", "label"
    else:
        return
    close = difflib.get_close_matches(wanted, names, n=1)
    raise UsageError(
        f"{where} has no column {lacks}. Its own columns are: {', '.join(names) or 'none'}. "
        f"Accepted are: {' or '.join(PATHS)}; label; and where known {', '.join(OPTIONAL)}"
        + (f". By {close[0]!r}, did you mean {wanted!r}?" if close else "")
    )


def read_table(file: Path, top: Path) -> dict[str, Listing]:
    """Return the listings "train" and "test" of a table whose paths are relative to `top`."""
    top = top.absolute()
    parts = {"train": Listing(top), "test": Listing(top)}
    place, labels = _places(top), dict[str, str]()
    for number, row in enumerate(rows(file), start=1):
        where = f"{file}, row {number}"
        _append(parts[split_of(row, where)], row, place, labels, where)
    train, test = parts["train"], parts["test"]
    if not train:
        raise UsageError(f"{file} has no rows for training")
    for part in parts.values():
        if part.ids == part.names:
            part.ids = part.names  # which also takes the memory once
    if not are_distinct(train.ids, test.ids):
        _name_the_second(file)
    return parts


def _name_the_second(file: Path) -> None:
    """Refuse a table in which an id stands twice."""
    seen: set[str] = set()
    for number, row in enumerate(rows(file), start=1):
        name = id_of(row)
        if name in seen:
            raise UsageError(f"{file}, row {number}: the id {name!r} stands there twice")
        seen.add(name)


def split_of(row: Row, where: str) -> str:
    """Return train or test."""
    name = str(row.get("split") or "").strip().lower()
    if name in ("", *TRAIN):
        return "train"
    if name in (*TEST, *VALIDATION):
        return "test"
    raise UsageError(f"{where}: the split {name!r} is none of train, val, test")


def path_of(row: Row) -> str:
    """Return the path as it is written."""
    return next(str(row[name]) for name in PATHS if row.get(name) is not None or name in row)


def id_of(row: Row) -> str:
    """Return the id: the column, or else the path."""
    return str(row.get("id") or path_of(row))


def _places(top: Path) -> Callable[[str], str | None]:
    """Return what makes a path relative to `top`, or None if its file does not lie below it."""
    root = os.path.realpath(top)
    within, inside = str(top / "_")[:-1], str(Path(root) / "_")[:-1]  # both end with a slash

    @lru_cache(maxsize=BATCH)  # of a folder with many files, links are followed once
    def is_below(folder: str) -> bool:
        found = os.path.realpath(folder)
        return found == root or found.startswith(inside)

    def place(written: str) -> str | None:
        path = within + written if PLAIN.fullmatch(written) else str(top / written)
        folder, name = os.path.split(path)
        follow = name in ("", "..") or os.path.islink(path)  # noqa: PTH114  twice as fast
        if not is_below(path if follow else folder):
            return None
        return path[len(within) :] if path.startswith(within) else os.path.relpath(path, top)

    return place


def _append(
    part: Listing,
    row: Row,
    place: Callable[[str], str | None],
    labels: dict[str, str],
    where: str,
) -> None:
    """Add a row to a listing, after checking that its file stays below the root.

    Args:
        part: the listing.
        row: of the table.
        place: what `_places` returned.
        labels: those seen so far; equal ones become one string.
        where: the row is.
    """
    written, label = path_of(row), row["label"]
    if not written or "\0" in written or label is None or str(label) == "":
        raise UsageError(f"{where}: the path or the label is empty")
    try:
        name = place(written)
    except (OSError, ValueError) as error:  # a link to itself; half a pair of Unicode
        raise UsageError(f"{where}: {written!r} is no path: {error}") from error
    if name is None:
        raise UsageError(f"{where}: {written!r} leaves the folder {part.root}; set data.root")
    part.names.append(name)
    part.ids.append(id_of(row))
    part.labels.append(labels.setdefault(str(label), str(label)))
    true = row.get("true_label")
    if true is not None and str(true) != "":
        part.true = part.true if part.true is not None else []
        part.true.append(labels.setdefault(str(true), str(true)))
    if part.true is not None and len(part.true) != len(part):
        raise UsageError(f"{where}: some rows have a true_label and some have none")
