"""Label files: given labels by sample id, with all that is needed to know what they are.

A `.npz` holds plain arrays, a `.csv` the same with a first line of JSON behind a `#`; neither can
hold code. Writing returns bytes: who calls decides how they reach the disk.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.noise import Labels, Realised, realised
from unswayed.parsing import parse_object, read_arrays

FORMAT = "unswayed labels 1"
SUFFIXES = (".npz", ".csv")
COLUMNS = ["id", "before", "given"]


@dataclass(frozen=True)
class LabelFile:
    """Labels before and after a noise, and its convention."""

    ids: tuple[str, ...]
    before: Labels  # (N,) what the data set said
    given: Labels  # (N,) what the noise made of it
    classes: tuple[str, ...]
    convention: str
    seed: int
    expected: NDArray[np.float64]  # (K, K)

    def __post_init__(self) -> None:
        _check(self)

    def realised(self) -> Realised:
        """Return the share of changed labels, and the matrix by which they changed."""
        return realised(self.before, self.given, len(self.classes))

    def expected_rate(self) -> float:
        """Return the share of wrong labels that the expected matrix means for these classes."""
        return float((1 - np.diag(self.expected))[self.before].mean())


def encode(labels: LabelFile, suffix: str) -> bytes:
    """Return the content of a .npz or .csv file."""
    if suffix not in SUFFIXES:
        raise UsageError(f"a label file ends in {' or '.join(SUFFIXES)}, not in {suffix!r}")
    return _npz(labels) if suffix == ".npz" else _csv(labels)


def read(path: str | Path) -> LabelFile:
    """Read a label file; whatever is wrong with it is said in one line."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: a label file ends in {' or '.join(SUFFIXES)}")
    try:
        found = _from_npz(path) if path.suffix == ".npz" else _from_csv(path)
    except FileNotFoundError:
        raise UsageError(f"there is no label file {path}") from None
    except Exception as error:  # zip, csv, JSON and NumPy each have their own for a damaged file
        raise UsageError(f"{path} is not a readable label file: {_say(error)}") from error
    return found


def _say(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _note(labels: LabelFile) -> dict[str, Any]:
    """Return everything but the columns; rate and matrix are there for other readers."""
    rate, matrix = labels.realised()
    return {
        "format": FORMAT,
        "convention": labels.convention,
        "seed": str(labels.seed),  # of any size
        "classes": list(labels.classes),
        "rate": rate,
        "matrix": matrix,
        "expected_matrix": labels.expected,
    }


def _npz(labels: LabelFile) -> bytes:
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in _note(labels).items()}
    arrays |= {"ids": np.array(labels.ids), "before": labels.before, "given": labels.given}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _csv(labels: LabelFile) -> bytes:
    note = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in _note(labels).items()}
    text = io.StringIO()
    text.write(f"# {json.dumps(note, ensure_ascii=False)}\n")
    writer = csv.writer(
        text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )  # ids may hold "\r"
    writer.writerow(COLUMNS)
    writer.writerows(
        zip(labels.ids, labels.before.tolist(), labels.given.tolist(), strict=True),
    )
    return text.getvalue().encode()


def _from_npz(path: Path) -> LabelFile:
    found = read_arrays(path)
    return _made(found["ids"].tolist(), found["before"], found["given"], found)


def _from_csv(path: Path) -> LabelFile:
    with path.open(encoding="utf-8", newline="") as file:
        head = file.readline()
        if not head.startswith("# {"):
            raise ValueError("its first line is not a note in JSON; make it with `unswayed noise`")
        rows = list(csv.reader(file))
    if not rows or rows[0] != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
    before, given = (np.array([int(row[i]) for row in rows[1:]], dtype=np.int64) for i in (1, 2))
    return _made([row[0] for row in rows[1:]], before, given, parse_object(head[2:]))


def _made(
    ids: list[str], before: NDArray[Any], given: NDArray[Any], note: Mapping[str, Any]
) -> LabelFile:
    if str(note["format"]) != FORMAT:
        raise ValueError(f"its format is {str(note['format'])!r}, not {FORMAT!r}")
    return LabelFile(
        ids=tuple(ids),
        before=before,
        given=given,
        classes=tuple(np.asarray(note["classes"]).tolist()),
        convention=str(note["convention"]),
        seed=int(str(note["seed"])),
        expected=np.asarray(note["expected_matrix"], dtype=np.float64),
    )


def _check(labels: LabelFile) -> None:
    k = len(labels.classes)
    if not labels.ids:
        raise UsageError("it holds no labels")
    if len(set(labels.ids)) != len(labels.ids):
        raise UsageError("an id appears twice")
    for name, values in (("before", labels.before), ("given", labels.given)):
        if values.dtype != np.int64 or values.shape != (len(labels.ids),):
            raise UsageError(f"{name!r} is not one 64-bit integer per id")
        if values.min() < 0 or values.max() >= k:
            bad = values[(values < 0) | (values >= k)][0]
            raise UsageError(f"the label {bad} in {name!r} is not one of its {k} classes")
    if labels.expected.shape != (k, k):
        raise UsageError(f"its expected matrix is not {k} × {k}")
