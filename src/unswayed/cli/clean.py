"""Find the wrong labels of a folder of images: plan, train, audit, report.

PATH is a folder with a sub-folder per class, a table (.csv, .jsonl, .parquet) or an .npz file. The
plan fits this machine and the given minutes, and is said before the training starts. Ctrl-C stops;
the same command goes on. Nothing in PATH is changed.

With --accept P, corrected labels are written to RUN/corrected.csv: what people decided in a review,
and suggestions that are right with at least this probability. With --retrain, the same network is
then trained on them, which takes about as long again, and compared with the first one. Without
--accept, it is trained on what people decided.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.audit import audit_run
from unswayed.cli.loading import data_progress
from unswayed.cli.train import show_holdout, watched
from unswayed.errors import InterruptedRunError, UsageError

if TYPE_CHECKING:
    from unswayed.audits import Audit
    from unswayed.plan import Material, Plan
    from unswayed.recipe import Recipe
    from unswayed.runs import Run

MINUTES = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("path", metavar="PATH", help="a folder, or a .csv, .jsonl, .parquet or .npz file")
    add("overrides", nargs="*", metavar="key=value", help="options that the plan must not choose")
    add("--minutes", type=float, default=MINUTES, help=f"for everything ({MINUTES:g})")
    add("--run", metavar="DIR", help="the run folder (default: runs/ and the name of PATH)")
    add("--dry-run", action="store_true", help="say the plan, and do not train")
    add("--top", type=int, default=10, metavar="N", help="labels that are shown (10)")
    add("--accept", type=float, metavar="P", help="write corrected labels, such as with 0.95")
    add("--retrain", action="store_true", help="train on corrected labels, and compare")


def run(args: argparse.Namespace) -> int:
    """Clean, and say what was found."""
    if not 0 < args.minutes < 1e5:
        raise UsageError("--minutes must be a positive number of minutes")
    path = Path(args.path)
    if not path.exists():
        raise UsageError(f"there is no folder and no file {path}")
    folder = Path(args.run) if args.run else Path("runs") / path.resolve().stem
    if args.dry_run:
        plan_for(path, folder, args.minutes, args.overrides)
        return 0
    if args.accept is not None:
        from unswayed.exports.corrections import check_accept

        check_accept(args.accept)  # before anything is trained
    made, _ = clean(path, folder, args.minutes, args.overrides, top=args.top)
    if args.retrain:
        retrain(made, args.accept)
    elif args.accept is not None:
        from unswayed.exports import export

        print(export(made, accept=args.accept, format="labels"))
    return 0


def retrain(before: Run, accept: float | None) -> None:
    """Train on corrected labels, and say what that gained."""
    from unswayed.exports.gain import gain
    from unswayed.exports.retraining import prepare_retraining

    recipe, folder, labels = prepare_retraining(before, accept)
    print(labels.corrections)
    print(f"corrected labels: {labels.path}")
    if not labels.corrections.changes:
        print(
            "no label changes, so nothing is trained again; decide in a review, or take more "
            "suggestions with a smaller --accept"
        )
        return
    after = watched(recipe, folder)
    with data_progress():
        gained = gain(before, after)
    print(gained)
    print(f"the network of corrected labels: {after.path}")
    both = shlex.join(["unswayed", "compare", str(before.path), str(after.path)])
    print(f"all numbers: {both}")


def clean(
    path: Path, folder: Path, minutes: float, overrides: Sequence[str] = (), *, top: int = 10
) -> tuple[Run, Audit]:
    """Plan, train and audit; a run that is there already is resumed or shown.

    Args:
        path: the data.
        folder: of the run.
        minutes: for everything.
        overrides: options that the plan must not choose.
        top: labels that are shown.
    """
    from unswayed.runs import Run

    if (folder / "recipe.toml").is_file():
        recipe = _same(Run(folder), path, overrides)
    else:
        recipe = plan_for(path, folder, minutes, overrides).recipe
    try:
        run = watched(recipe, folder)
    except InterruptedRunError as stopped:  # `resume` would train, and not audit
        said = str(stopped).partition(" Go on with:")[0]
        number = stopped.exit_code - 128
        raise InterruptedRunError(f"{said} Go on with the same command", number) from stopped
    found = audit_run(run, top=top)
    show_holdout(run)
    return run, found


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
        raise UsageError(f"{path} cannot be trained on; mend first:\n  " + "\n  ".join(found.mend))
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
