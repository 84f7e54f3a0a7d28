"""Plan a training on someone's data, for `clean` and for the recipe `cpu/auto`."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.loading import data_progress
from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.plan import Material, Plan
    from unswayed.recipe import Recipe
    from unswayed.runs import Run

MINUTES = 10.0
"""For everything, if nothing else is said."""


def check_minutes(minutes: float) -> None:
    """Refuse a time that nothing fits into, or that nobody means."""
    if not 0 < minutes < 1e5:
        raise UsageError("--minutes must be a positive number of minutes")


def folder_for(path: Path, run: str | None) -> Path:
    """Return the run folder: as named, or that of the data in runs/."""
    return Path(run) if run else Path("runs") / path.resolve().stem


def planned(path: Path, folder: Path, minutes: float, overrides: Sequence[str]) -> Recipe:
    """Return the recipe of a run that is there already, or plan a new one."""
    from unswayed.runs import Run

    if (folder / "recipe.toml").is_file():
        return _same(Run(folder), path, overrides)
    return plan_for(path, folder, minutes, overrides).recipe


def _same(run: Run, path: Path, overrides: Sequence[str]) -> Recipe:
    """Return the recipe of a run of these data, which holds its plan."""
    recipe = run.recipe
    there = recipe.sections["data"].get("path")
    if there is None or Path(there) != path.absolute():
        raise UsageError(
            f"{run.path} is a run of other data ({there or recipe.sections['data']['name']}); "
            "choose another folder with --run"
        )
    differing = recipe.with_overrides(*overrides).difference(recipe)
    if differing:
        raise UsageError(
            f"{run.path} was planned with another {', '.join(differing[:5])}; choose another "
            "folder with --run"
        )
    return recipe


def plan_for(path: Path, folder: Path, minutes: float, overrides: Sequence[str]) -> Plan:
    """Inspect and measure, and say the plan for a new run."""
    began = time.perf_counter()
    from unswayed.plan import make_plan
    from unswayed.session import is_taken

    if folder.resolve().is_relative_to(path.resolve()):
        beside = path.resolve().parent / "runs" / path.resolve().name
        raise UsageError(
            f"the run folder {folder} would be inside the data; choose another with --run, for "
            f"example --run {beside}"
        )
    if is_taken(folder):
        raise UsageError(f"{folder} is not empty and not a run folder; choose another with --run")
    with data_progress():
        material = _look(path, overrides)
        plan = make_plan(material, minutes, overrides, time.perf_counter() - began)
    print(plan, file=sys.stderr, flush=True)
    return plan


def _look(path: Path, overrides: Sequence[str]) -> Material:
    """Inspect the data, say what is odd about them, and return what a plan needs."""
    from unswayed.data.inspect import inspect
    from unswayed.data.npz import npz
    from unswayed.plan import Material

    if path.suffix.lower() == ".npz":
        return Material.of_arrays(path, npz(str(path)))
    found = inspect(path)
    if found.mend:
        raise UsageError(f"{path} cannot be trained on; mend first:", *found.mend)
    missing = [word for word in found.options if word not in overrides]
    if missing:
        raise UsageError(f"this folder needs {shlex.join(missing)}; write: {found.clean_command}")
    material = Material.of_findings(found)
    for remark in found.remarks:
        print(f"unswayed: note: {remark}", file=sys.stderr)
    if found.unreadable or found.conflicts:
        print(
            f"unswayed: note: {len(found.unreadable)} images are unreadable, and "
            f"{len(found.conflicts)} groups of equal images have different labels; see: "
            f"unswayed data inspect {shlex.quote(str(path))}",
            file=sys.stderr,
        )
    return material
