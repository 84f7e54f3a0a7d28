"""Tables of labels and of changes, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from unswayed.errors import UsageError
from unswayed.exports.corrections import Correction, Corrections

CHANGES = ("id", "old_label", "new_label", "decided_by", "p_wrong", "what")


def line(fields: Iterable[object], end: str = "\n", delimiter: str = ",") -> str:
    """Return one line of a CSV file."""
    text = io.StringIO()
    # With this ending, fields with either kind of line break are quoted.
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(fields)
    return text.getvalue()[:-2] + end


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        try:
            file.writelines(line(row) for row in (columns, *rows))
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the name {error.object[:100]!r} is not UTF-8, which a table cannot hold"
            ) from error


def write_changes(path: Path, changes: Iterable[Correction]) -> None:
    """Write every change."""
    rows = ((*c[:2], c.new_label or "", c.decided_by, _share(c), c.what) for c in changes)
    write_table(path, CHANGES, rows)


def write_labels(path: Path, corrections: Corrections) -> None:
    """Write the label of every sample, as `data.corrected` reads it."""
    run = corrections.run
    true, classes = run.samples().true, run.provenance.data.classes
    truth = {} if true is None else dict(zip(corrections.ids, true.tolist(), strict=True))
    changed = {change.id: change for change in corrections.changes}
    rows = []
    for name, label in corrections.labels.items():
        known = [] if true is None else [classes[truth[name]] if name in truth else ""]
        change = changed.get(name)
        why = (change.old_label, change.decided_by, _share(change)) if change else ("", "", "")
        rows.append((name, label or "", *known, *why))
    columns = ["id", "label", *([] if true is None else ["true_label"])]
    write_table(path, [*columns, "old_label", "decided_by", "p_wrong"], rows)


def _share(change: Correction) -> str:
    return f"{change.p_wrong:.6f}"
