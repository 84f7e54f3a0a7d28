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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unswayed.cli.audit import audit_run
from unswayed.cli.loading import data_progress
from unswayed.cli.planning import MINUTES, check_minutes, folder_for, plan_for, planned
from unswayed.cli.train import show_holdout, watched
from unswayed.errors import InterruptedRunError, UsageError

if TYPE_CHECKING:
    from unswayed.audits import Audit
    from unswayed.runs import Run


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
    check_minutes(args.minutes)
    path = Path(args.path)
    if not path.exists():
        raise UsageError(f"there is no folder and no file {path}")
    folder = folder_for(path, args.run)
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
    try:
        run = watched(planned(path, folder, minutes, overrides), folder)
    except InterruptedRunError as stopped:  # `resume` would train, and not audit
        said = str(stopped).partition(" Go on with:")[0]
        number = stopped.exit_code - 128
        raise InterruptedRunError(f"{said} Go on with the same command", number) from stopped
    found = audit_run(run, top=top)
    show_holdout(run)
    return run, found
