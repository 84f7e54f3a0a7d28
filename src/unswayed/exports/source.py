"""The image files that a run was trained and tested on, with corrected labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from unswayed.data import CORRECTED
from unswayed.data.layout import Layout, find_layout
from unswayed.data.listing import Listing
from unswayed.data.tables import read_table
from unswayed.errors import UsageError
from unswayed.exports.corrections import Corrections
from unswayed.parsing import read_json
from unswayed.runs import Run


class Image(NamedTuple):
    """An image file."""

    path: Path
    id: str
    old_label: str
    label: str | None  # None: it is left out
    split: Literal["train", "test"]
    readable: bool = True


def top_of(run: Run) -> Path:
    """Return the folder that the paths of the images are relative to."""
    data = run.recipe.sections["data"]
    if data["name"] == "manifest":
        return Path(data["root"]) if data["root"] else Path(data["path"]).parent
    return Path(data["path"])


def layout_of(run: Run) -> Layout:
    """Return the layout of the folder of a run."""
    data = run.recipe.sections["data"]
    folders = tuple(data["train_folders"])
    return find_layout(Path(data["path"]), links=data["links"], train_folders=folders)


def images(corrections: Corrections) -> list[Image]:
    """Return all image files in order; those of a folder or table that has changed are refused.

    Files that could not be read keep their label.
    """
    run = corrections.run
    data = run.recipe.sections["data"]
    if data["name"] == "manifest":
        listed = read_table(Path(data["path"]), top_of(run))
    else:
        listed = layout_of(run).listings()
    train, test = listed["train"], listed.get("test") or Listing()
    check_unchanged(corrections, train.ids, train.labels)
    labels = corrections.labels
    found = [
        Image(path, name, old, labels.get(name, old), "train", name in labels)
        for path, name, old in zip(train.paths, train.ids, train.labels, strict=True)
    ]
    return found + [
        Image(path, name, old, old, "test")
        for path, name, old in zip(test.paths, test.ids, test.labels, strict=True)
    ]


def check_unchanged(corrections: Corrections, ids: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse samples or labels that are not those of the run: somebody has worked on the data.

    Args:
        corrections: the labels of the run.
        ids: of the training samples as they are now.
        labels: their labels.
    """
    run, known = corrections.run, {*corrections.labels, *skipped(corrections.run)}
    here = set(ids)
    odd = next((name for name in corrections.ids if name not in here), None)
    odd = odd or next((name for name in ids if name not in known), None)
    if odd is None and _as_they_came(run):
        given = dict(zip(corrections.ids, corrections.given, strict=True))
        pairs = zip(ids, labels, strict=True)
        odd = next((name for name, label in pairs if given.get(name, label) != label), None)
    if odd is not None:
        raise UsageError(
            f"the data have changed since {run.path} was trained, for example {odd!r}; train and "
            "audit again, or use --as labels"
        )


def _as_they_came(run: Run) -> bool:
    """Return whether the labels of a run are those of its data."""
    sections = run.recipe.sections
    return sections["noise"]["name"] == "none" and not sections["data"].get(CORRECTED)


def skipped(run: Run) -> set[str]:
    """Return the ids of the files that could not be read."""
    file = run.path / "skipped.json"
    return set(read_json(file)) if file.is_file() else set()
