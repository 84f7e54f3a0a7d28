"""Read tables that name image files and their labels."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unswayed.data.layout import TEST, TRAIN, VALIDATION
from unswayed.data.listing import Listing
from unswayed.errors import UsageError
from unswayed.parsing import parse_object

PATHS = ("path", "file_name", "image")
OPTIONAL = ("true_label", "split", "id")
BATCH = 1024
Row = Mapping[str, Any]


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
            for rows in table.iter_batches(BATCH, columns=[n for n in names if n in known]):
                yield from rows.to_pylist()
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
    parts = {"train": Listing(root=top), "test": Listing(root=top)}
    seen: set[str] = set()
    for number, row in enumerate(rows(file), start=1):
        where = f"{file}, row {number}"
        part = parts[split_of(row, where)]
        append(part, row, top, where)
        if part.ids[-1] in seen:
            raise UsageError(f"{where}: the id {part.ids[-1]!r} stands there twice")
        seen.add(part.ids[-1])
    if not parts["train"]:
        raise UsageError(f"{file} has no rows for training")
    return parts


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


def append(part: Listing, row: Row, top: Path, where: str) -> None:
    """Add a row to a listing, after checking that its file stays below `top`."""
    relative, label = path_of(row), row["label"]
    if not relative or "\0" in relative or label is None or str(label) == "":
        raise UsageError(f"{where}: the path or the label is empty")
    place = (top / relative).absolute()
    try:
        inside = place.resolve().is_relative_to(top.resolve())
    except (RuntimeError, ValueError) as error:  # a link to itself; half a pair of Unicode
        raise UsageError(f"{where}: {relative!r} is no path: {error}") from error
    if not inside:
        raise UsageError(f"{where}: {relative!r} leaves the folder {top}; set data.root")
    part.paths.append(place)
    part.ids.append(id_of(row))
    part.labels.append(str(label))
    true = row.get("true_label")
    if true is not None and str(true) != "":
        part.true = part.true if part.true is not None else []
        part.true.append(str(true))
    if part.true is not None and len(part.true) != len(part.paths):
        raise UsageError(f"{where}: some rows have a true_label and some have none")
