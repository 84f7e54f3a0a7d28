"""Train a run again on its corrected labels: the same recipe, beside it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import NamedTuple

from unswayed.build import settled
from unswayed.exports.corrections import Corrections, correct
from unswayed.exports.formats import Exported, beside, export, overrides
from unswayed.recipe import Recipe
from unswayed.runs import Run


class Retraining(NamedTuple):
    """What to train, and where."""

    recipe: Recipe
    folder: Path
    labels: Exported


def prepare_retraining(run: Run, accept: float | None = None) -> Retraining:
    """Export the corrected labels of a run, and return the recipe that trains on them.

    The recipe has the same epochs. The folder is `<RUN>-corrected`, unless a run of other labels is
    there: then it has a number, and so has the table of labels.

    Args:
        run: an audited run.
        accept: also take suggestions that are right with at least this probability.
    """
    found = correct(run, accept)
    folder, file = _free_places(run, found)
    labels = export(run, file, accept=accept, format="labels")
    same = settled(run.recipe, run.provenance.resolved.model_dump(exclude_none=True))
    words = overrides(labels.corrections, file.absolute(), "labels")
    return Retraining(same.with_overrides(*words), folder, labels)


def _free_places(run: Run, found: Corrections) -> tuple[Path, Path]:
    """Return the folder of the new run and the file of its labels."""
    ends = ("corrected" if number == 1 else f"corrected-{number}" for number in count(1))
    places = ((beside(run, end), run.path / f"{end}.csv") for end in ends)
    return next(
        (folder, file)
        for folder, file in places
        if not folder.exists() or _is_trained_on(folder, found)
    )


def _is_trained_on(folder: Path, found: Corrections) -> bool:
    """Return whether a folder holds a run of these labels, finished or not."""
    if not (folder / "recipe.toml").is_file():
        return False
    samples, classes = Run(folder).samples(), found.run.provenance.data.classes
    labels = {str(name): classes[k] for name, k in zip(samples.ids, samples.given, strict=True)}
    return labels == {name: label for name, label in found.labels.items() if label is not None}
