"""The recipes of finished runs: which runs are the same training."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from unswayed.errors import UsageError
from unswayed.recipe import Recipe
from unswayed.training.run import Run, finished_runs


def recipe_of(run: Run) -> Recipe:
    """Return the recipe of a run."""
    file = run.path / "recipe.toml"
    return _load(file, file.stat().st_mtime_ns)


@cache
def _load(file: Path, _changed: int) -> Recipe:
    return Recipe.load(file)  # a grid asks for hundreds of them, again and again


def key_of(run: Run, ignoring: Collection[str] = ()) -> str:
    """Return a text that runs of the same training share, but for some options.

    A recipe that this version cannot load is equal to itself alone.
    """
    try:
        return recipe_of(run).key(ignoring)
    except UsageError:
        return str(run.path)


def runs_by_key(top: Path, pattern: str = "**", ignoring: Collection[str] = ()) -> dict[str, Run]:
    """Return a finished run for every training in the folders below one."""
    found: dict[str, Run] = {}
    for run in finished_runs(top, pattern):
        found.setdefault(key_of(run, ignoring), run)
    return found
