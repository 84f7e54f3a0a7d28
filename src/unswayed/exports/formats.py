"""Write the corrected data of a run, in the format that they came in or in another one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from unswayed.data import CORRECTED
from unswayed.data.listing import class_names
from unswayed.errors import UsageError
from unswayed.exports.arrays import write_arrays
from unswayed.exports.corrections import Corrections, correct
from unswayed.exports.huggingface import write_saved
from unswayed.exports.labels import write_changes, write_labels
from unswayed.exports.places import check_free, check_outside, placed
from unswayed.exports.source import images, top_of
from unswayed.exports.tables import write_files, write_manifest
from unswayed.exports.trees import write_moves, write_tree
from unswayed.registry import did_you_mean
from unswayed.runs import Run
from unswayed.session import new_folder

Format = Literal["links", "copies", "moves", "manifest", "npz", "metadata", "huggingface", "labels"]
Writer = Callable[[Path, Corrections], None]

FORMATS: Mapping[str, tuple[Format, ...]] = {
    "folder": ("links", "copies", "moves", "manifest", "metadata", "huggingface", "labels"),
    "manifest": ("manifest", "links", "copies", "metadata", "huggingface", "labels"),
    "npz": ("npz", "huggingface", "labels"),
    "memory": ("labels",),  # the images are not on the disk
}
"""What the data of a run can be written as, by `data.name`; the first is the default."""

OTHERS: tuple[Format, ...] = ("labels", "huggingface")


TABLE = "corrected-manifest"
"""Not called like the table of labels, which may be a .csv in the same folder."""


class Kind(NamedTuple):
    """How a format is written."""

    write: Writer
    suffix: str  # empty for a folder
    name: str = "corrected"


KINDS: Mapping[Format, Kind] = {
    "links": Kind(partial(write_tree, how="links"), ""),
    "copies": Kind(partial(write_tree, how="copies"), ""),
    "moves": Kind(write_moves, ".csv", "moves"),
    "manifest": Kind(write_files, ".csv", TABLE),
    "npz": Kind(write_arrays, ".npz"),
    "metadata": Kind(partial(write_files, path="file_name"), ".csv", "metadata"),
    "huggingface": Kind(write_saved, "", "corrected-huggingface"),
    "labels": Kind(write_labels, ".csv"),
}


@dataclass(frozen=True)
class Exported:
    """What was written, and what to do with it."""

    path: Path
    changes: Path | None  # the table of changes, if it is a file of its own
    format: Format | None  # None for the table of changes alone
    corrections: Corrections
    next: str  # a command, or a line of Python; empty if there is none

    def __str__(self) -> str:
        """Return it in a few lines."""
        what = f"as {self.format}" if self.format else "the changes alone"
        lines = [str(self.corrections), f"written, {what}: {self.path}"]
        if self.changes:
            lines.append(f"every change: {self.changes}")
        if self.format == "moves":
            lines.append(f"nothing was moved; the paths lie below {top_of(self.corrections.run)}")
        if not self.corrections.changes:
            folder = shlex.quote(str(self.corrections.run.path))
            lines.append(f"nothing changes yet; decide first: unswayed review {folder}")
        elif self.next:
            lines.append(f"next: {self.next}")
        if self.corrections.changes and self.format in ("links", "copies", "npz"):
            lines.append(
                "such a training holds out other images, so its numbers do not compare; for a fair "
                "comparison, train on --as labels"
            )
        return "\n".join(lines)


def export(
    run: Run | str | Path,
    to: str | Path | None = None,
    *,
    accept: float | None = None,
    format: Format | None = None,
    changed: bool = False,
) -> Exported:
    """Write the data of an audited run with corrected labels; the original is never touched.

    >>> import unswayed
    >>> from unswayed.audits.storage import write_audit
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> write_audit(unswayed.audit(run), run)
    >>> unswayed.export(run, accept=0.9).path.as_posix()
    'runs/short/corrected.csv'

    Args:
        run: a finished run with an audit.
        to: the file or folder to write; `corrected` in the run folder if not given.
        accept: also take suggestions that are right with at least this probability.
        format: by default the one that the data came in; see `FORMATS`.
        changed: write only the table of changes.
    """
    run = run if isinstance(run, Run) else Run(run)
    if changed and format is not None:
        raise UsageError("--changed writes only the table of changes; leave --as out")
    chosen = None if changed else _format(run, format)
    kind = Kind(_only_changes, ".csv", "changes") if chosen is None else _kind(run, chosen)
    place = Path(to) if to is not None else run.path / f"{kind.name}{kind.suffix}"
    if not kind.suffix and place.suffix in (".csv", ".jsonl", ".parquet", ".npz"):
        raise UsageError(f"--to {place}: this format is a folder; for a table add --as manifest")
    if kind.suffix and place.suffix.lower() != kind.suffix.lower():
        raise UsageError(f"--to {place}: this format is a file that ends in {kind.suffix}")
    check_outside(run, place)
    changes = place.with_name(f"{place.stem}.changes.csv") if chosen and kind.suffix else None
    for each in filter(None, (place, changes)):
        check_free(run, each)
    found = correct(run, accept)
    with placed(run, place) as new:
        kind.write(new, found)
    if changes:
        with placed(run, changes) as new:
            write_changes(new, found.changes)
    after = next_step(found, place, chosen) if chosen else ""
    return Exported(place, changes, chosen, found, after)


def _format(run: Run, wanted: str | None) -> Format:
    name = run.recipe.sections["data"]["name"]
    known = FORMATS.get(name, OTHERS)
    for each in known:
        if wanted in (None, each):
            return each
    raise UsageError(
        f"--as {wanted}: data.name={name} cannot be written so; {did_you_mean(str(wanted), known)}"
    )


def _kind(run: Run, chosen: Format) -> Kind:
    data = run.recipe.sections["data"]
    if chosen == "manifest" and data["name"] == "manifest":
        return Kind(write_manifest, Path(data["path"]).suffix, TABLE)
    return KINDS[chosen]


def _only_changes(new: Path, corrections: Corrections) -> None:
    write_changes(new, corrections.changes)


def next_step(corrections: Corrections, place: Path, chosen: Format) -> str:
    """Return how to train on what was written."""
    run, place = corrections.run, place.absolute()
    if chosen == "moves":
        return ""
    if chosen == "huggingface":
        return f"datasets.load_from_disk({str(place)!r})"
    words = overrides(corrections, place, chosen)
    recipe = run.path / "recipe.toml"
    if run.recipe.sections["data"]["name"] == "memory":
        shown = ", ".join(map(repr, (str(recipe), *words)))
        return f"unswayed.train({shown}, data=...)"
    wanted = beside(run, "corrected")
    folder = new_folder(wanted.name, wanted.parent)  # another training may be there
    return shlex.join(["unswayed", "train", str(recipe), *words, "--run", str(folder)])


def beside(run: Run, end: str) -> Path:
    """Return the folder `<RUN>-<end>`; the run itself may be given as `.`."""
    whole = run.path.resolve()
    name = f"{whole.name}-{end}"
    return run.path.with_name(name) if run.path.name == whole.name else whole.with_name(name)


def overrides(corrections: Corrections, place: Path, chosen: Format) -> list[str]:
    """Return the options with which the recipe of the run trains on what was written."""
    sections = corrections.run.recipe.sections
    data = sections["data"]
    words = ["noise.name=none"] if sections["noise"]["name"] != "none" else []
    if chosen == "labels":
        return [f"data.{CORRECTED}={place}", *words]
    words += [f"data.{CORRECTED}="] if data.get(CORRECTED) else []
    if chosen in ("manifest", "metadata"):
        top = top_of(corrections.run)
        words += ["data.name=manifest"] if data["name"] != "manifest" else []
        words += [f"data.root={top}"] if place.parent != top else []
        words += _classes(corrections)
    elif chosen in ("links", "copies"):
        words += ["data.name=folder"] if data["name"] != "folder" else []
        words += ["data.links=true"] if chosen == "links" else []
    return [f"data.path={place}", *words]


def _classes(corrections: Corrections) -> list[str]:
    """Return the option that keeps the classes, if a table alone would not."""
    classes = corrections.run.provenance.data.classes
    found = [each.label for each in images(corrections) if each.label and each.split == "train"]
    true = corrections.run.samples().true
    known = [] if true is None else [classes[k] for k in true.tolist()]
    same = list(class_names(found, known)) == list(classes)
    return [] if same else [f"data.classes={json.dumps(list(classes), ensure_ascii=False)}"]
