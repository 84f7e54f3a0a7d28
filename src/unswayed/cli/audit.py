"""Find the labels that are probably wrong.

All labels that the run was trained on are judged. The table goes to RUN/audit.csv, the worst label
first, and its summary to RUN/audit.json. P(wrong) is a probability: of ten labels with 0.7, about
seven are wrong.
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unswayed.cli.show import console

if TYPE_CHECKING:
    from unswayed.audits import Audit
    from unswayed.runs import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a finished run folder")
    add("--top", type=int, default=10, metavar="N", help="labels that are shown (10)")
    add("--out", metavar="FILE", help="also write the table as .csv, .json or .parquet")
    add("--evidence", metavar="NAME", help="use this evidence (default: chosen by the data)")


def run(args: argparse.Namespace) -> int:
    """Audit, write, and say what to do next."""
    from unswayed.runs import Run

    audit_run(Run(args.run), evidence=args.evidence, top=args.top, out=args.out)
    return 0


def audit_run(
    run: Run, *, evidence: str | None = None, top: int = 10, out: str | None = None
) -> Audit:
    """Audit a finished run, write what was found into its folder, and say it.

    `unswayed audit` and `unswayed clean` end here.

    Args:
        run: a finished run.
        evidence: see `unswayed.audits.audit`.
        top: labels that are shown.
        out: another file for the table.
    """
    from unswayed.audits import audit
    from unswayed.files import write_json

    with Console(stderr=True).status("judging labels"):
        found = audit(run, evidence)
    found.write(run.path / "audit.csv")
    write_json(run.path / "audit.json", found.summary())
    if out:
        found.write(out)
    if top > 0:
        console().print(table(found, top))
    print(found)
    folder = shlex.quote(str(run.path))
    print(f"all labels, worst first: {run.path / 'audit.csv'}")
    print(f"see more of them: unswayed audit {folder} --top 100")
    print(f"classify other images: unswayed predict {folder} IMAGE")
    return found


def table(found: Audit, count: int) -> Table:
    """Return the first rows."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("label of", "given", "suggested", "P(wrong)", "flags"):
        shown.add_column(name, justify="right" if name == "P(wrong)" else "left")
    for finding in found:
        if finding.rank > count:
            break
        names = map(Text, (finding.id, finding.given, finding.suggested))
        shown.add_row(*names, f"{100 * finding.p_wrong:.1f} %", finding.flags)
    return shown
