"""Corrected labels for the `datasets` library of Hugging Face."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pictures

from unswayed.data import Dataset
from unswayed.data.progress import tell
from unswayed.errors import UsageError
from unswayed.exports.corrections import Corrections, correct
from unswayed.exports.labels import write_changes
from unswayed.exports.tables import kept_images
from unswayed.runs import Run

Columns = dict[str, list[Any]]


def _library() -> Any:
    try:
        import datasets
    except ImportError:
        raise UsageError("this needs datasets: pip install 'unswayed[hf]'") from None
    return datasets


def corrected(run: Run, dataset: Any, accept: float | None = None, *, label: str = "label") -> Any:
    """Return a Hugging Face data set with the corrected labels of a run that was trained on it.

    The run was trained on `unswayed.data.from_huggingface(dataset)`. Rows are matched by their
    order. Samples that are left out are missing.

    Args:
        run: an audited run.
        dataset: the split that it was trained on, unchanged.
        accept: also take suggestions that are right with at least this probability.
        label: the column of labels.
    """
    found = correct(run, accept)
    classes = run.provenance.data.classes
    number = {name: k for k, name in enumerate(classes)}
    ids = [str(row) for row in range(len(dataset))]
    if found.labels.keys() != set(ids) or label not in dataset.features:
        raise UsageError(
            f"these {len(dataset):,} rows are not those of {run.path}: it was trained on "
            f"{len(found.ids):,} samples, such as {found.ids[0]!r}"
        )
    names = getattr(dataset.features[label], "names", None)
    if names is not None and list(names) != list(classes):
        raise UsageError(f"the classes of {label!r} are not those of {run.path}: {names}")
    _check_given(found, dataset[label], classes)
    order, feature = list(dataset.features), dataset.features[label]
    final = [found.labels[name] for name in ids]
    kept = [row for row, name in enumerate(final) if name is not None]
    values = [number[name] for name in final if name is not None]
    chosen = dataset.select(kept).remove_columns(label)
    return chosen.add_column(label, values, feature=feature).select_columns(order)


def _check_given(found: Corrections, labels: Any, classes: list[str]) -> None:
    """Refuse labels that are not those that were judged; synthetic noise is not in the data."""
    if found.run.recipe.sections["noise"]["name"] != "none" or found.earlier:
        return
    given = dict(zip(found.ids, found.given, strict=True))
    for row, label in enumerate(labels):
        if classes[int(label)] != given[str(row)]:
            raise UsageError(f"row {row} has another label than {found.run.path} was trained on")


def write_saved(new: Path, corrections: Corrections) -> None:
    """Save a data set with image, label and id, and the table of changes beside it."""
    library, classes = _library(), corrections.run.provenance.data.classes
    features = library.Features(
        {
            "image": library.Image(),
            "label": library.ClassLabel(names=list(classes)),
            "id": library.Value("string"),
        }
    )
    parts = {}
    for split, columns in _splits(corrections).items():
        plain = library.Dataset.from_dict(columns, features=features)
        name = _fingerprint(columns)
        parts[split] = library.Dataset(plain.data, info=plain.info, fingerprint=name)
    library.disable_progress_bars()
    library.DatasetDict(parts).save_to_disk(new, num_shards=dict.fromkeys(parts, 1))
    write_changes(new / "changes.csv", corrections.changes)


def _fingerprint(columns: Columns) -> str:
    """Return a name of the content; the library's own is another one each time."""
    found = hashlib.sha256()
    for values in columns.values():
        for value in values:
            found.update(repr(value).encode())
    return found.hexdigest()[:16]


def _splits(corrections: Corrections) -> dict[str, Columns]:
    run = corrections.run
    if run.recipe.sections["data"]["name"] in ("folder", "manifest"):
        return _of_files(corrections)
    splits = run.data()
    number = {name: k for k, name in enumerate(run.provenance.data.classes)}
    rows = [row for row, name in enumerate(corrections.ids) if corrections.labels[name] is not None]
    labels = [number[str(corrections.labels[corrections.ids[row]])] for row in rows]
    found = {"train": _of_arrays(splits.train, rows, labels)}
    if splits.test is not None:
        test = splits.test
        found["test"] = _of_arrays(test, list(range(len(test))), test.given.tolist())
    return found


def _of_files(corrections: Corrections) -> dict[str, Columns]:
    classes = corrections.run.provenance.data.classes
    number = {name: k for k, name in enumerate(classes)}
    found: dict[str, Columns] = {}
    for image in kept_images(corrections):
        if image.readable and image.path.is_file():
            columns = found.setdefault(image.split, {"image": [], "label": [], "id": []})
            columns["image"].append(str(image.path))
            columns["label"].append(number[str(image.label)])
            columns["id"].append(image.id)
    return found


def _of_arrays(data: Dataset, rows: list[int], labels: list[int]) -> Columns:
    pictures = [{"bytes": png, "path": None} for png in _pngs(data, rows)]
    return {"image": pictures, "label": labels, "id": [data.ids[row] for row in rows]}


def _pngs(data: Dataset, rows: list[int]) -> Iterator[bytes]:
    for done, row in enumerate(rows):
        pixels = data.images[torch.tensor([row])][0].permute(1, 2, 0).numpy()
        file = io.BytesIO()
        Pictures.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels).save(
            file, "PNG"
        )
        yield file.getvalue()
        if done % 100 == 0:
            tell("encoding images", done, len(rows))
