"""A table of image files with corrected labels: only lines that change are written anew."""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unswayed.data.tables import Row, id_of, split_of
from unswayed.errors import UsageError
from unswayed.exports.corrections import Corrections
from unswayed.exports.labels import line, write_table
from unswayed.exports.source import Image, images, top_of

Labels = Mapping[str, str | None]


def write_manifest(new: Path, corrections: Corrections) -> None:
    """Write the table of a run with corrected labels, in its own format."""
    images(corrections)  # refuses a table that has changed
    source = Path(corrections.run.recipe.sections["data"]["path"])
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        _parquet(source, new, corrections.labels)
        return
    rewrite = _json_lines if suffix == ".jsonl" else _csv
    with (
        source.open(newline="", encoding="utf-8-sig") as text,
        new.open("w", newline="", encoding=_encoding(source)) as out,
    ):
        out.writelines(rewrite(text, corrections.labels, "\t" if suffix == ".tsv" else ","))


def _encoding(source: Path) -> str:
    with source.open("rb") as file:
        marked = file.read(3) == codecs.BOM_UTF8
    return "utf-8-sig" if marked else "utf-8"


def _new_label(row: Row, labels: Labels) -> str | None:
    """Return the label of a row, None if it is left out."""
    old = str(row["label"])
    return old if split_of(row, "") == "test" else labels.get(id_of(row), old)


def _typed(label: str, old: Any) -> Any:
    """Return a label of the same type as another one."""
    if isinstance(old, bool):
        return label == "True"
    if isinstance(old, int | float):
        try:
            return type(old)(label)
        except ValueError:
            return label
    return label


def _csv(text: Iterable[str], labels: Labels, delimiter: str) -> Iterator[str]:
    taken: list[str] = []

    def noted() -> Iterator[str]:
        for each in text:
            taken.append(each)
            yield each

    heading: list[str] | None = None
    for fields in csv.reader(noted(), delimiter=delimiter):
        raw = "".join(taken)
        taken.clear()
        if heading is None or not fields:
            heading = fields if heading is None else heading
            yield raw
            continue
        row = dict(zip(heading, fields, strict=True))
        label = _new_label(row, labels)
        if label == row["label"]:
            yield raw
        elif label is not None:
            place = len(heading) - 1 - heading[::-1].index("label")  # of two, the last one counts
            fields[place] = label
            yield line(fields, raw[len(raw.rstrip("\r\n")) :], delimiter)


def _json_lines(text: Iterable[str], labels: Labels, _delimiter: str) -> Iterator[str]:
    for raw in text:
        row = json.loads(raw) if raw.strip() else None
        label = None if row is None else _new_label(row, labels)
        if row is None or label == str(row["label"]):
            yield raw
        elif label is not None:
            start, end = _span(raw)
            value = json.dumps(_typed(label, row["label"]), ensure_ascii=False)
            yield raw[:start] + value + raw[end:]


def _span(raw: str) -> tuple[int, int]:
    """Return where the value of `label` starts and ends in a JSON object; of two, the last."""
    read, gap = json.JSONDecoder().raw_decode, re.compile(r"[\s,:{]*")

    def after(place: int) -> int:
        found = gap.match(raw, place)
        return found.end() if found else place

    span = place = after(0)
    while raw[place] != "}":
        key, place = read(raw, place)
        start = after(place)
        _, place = read(raw, start)
        if key == "label":
            span, stop = start, place
        place = after(place)
    return span, stop


def _parquet(source: Path, new: Path, labels: Labels) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(source)
    rows = table.to_pylist()
    chosen = [_new_label(row, labels) for row in rows]
    values = [_typed(label or "", row["label"]) for label, row in zip(chosen, rows, strict=True)]
    kept = [place for place, label in enumerate(chosen) if label is not None]
    place = table.column_names.index("label")
    field = table.schema.field(place)
    try:
        column = pyarrow.array([values[row] for row in kept], type=field.type)
    except (pyarrow.ArrowException, TypeError) as error:
        raise UsageError(f"{source}: a label does not fit the column: {error}") from error
    pyarrow.parquet.write_table(table.take(kept).set_column(place, field, column), new)


def write_files(new: Path, corrections: Corrections, path: str = "path") -> None:
    """Write a new table of all image files that stay.

    Args:
        new: the file.
        corrections: the labels.
        path: what the column of paths is called.
    """
    top, kept = top_of(corrections.run), kept_images(corrections)
    tested = any(image.split == "test" for image in kept)
    rows = (
        (os.path.relpath(i.path, top), i.label, i.id, *([i.split] if tested else [])) for i in kept
    )
    write_table(new, (path, "label", "id", *(["split"] if tested else [])), rows)


def kept_images(corrections: Corrections) -> list[Image]:
    """Return the image files that are not left out."""
    return [image for image in images(corrections) if image.label is not None]
