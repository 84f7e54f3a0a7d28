"""Find the labels that are probably wrong.

All labels that the run was trained on are judged. RUN/report.html shows what was found, with
pictures. The table goes to RUN/audit.csv, the worst label first, and its summary to RUN/audit.json.
P(wrong) is a probability: of ten labels with 0.7, about seven are wrong.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from unswayed.cli.loading import clock, data_progress
from unswayed.cli.show import console
from unswayed.errors import UsageError

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
    add("--no-report", action="store_true", help="write no RUN/report.html")


def run(args: argparse.Namespace) -> int:
    """Audit, write, and say what to do next."""
    from unswayed.runs import Run

    audit_run(
        Run(args.run), evidence=args.evidence, top=args.top, out=args.out, page=not args.no_report
    )
    return 0


def audit_run(
    run: Run,
    *,
    evidence: str | None = None,
    top: int = 10,
    out: str | None = None,
    page: bool = True,
) -> Audit:
    """Audit a finished run, write what was found into its folder, and say it.

    `unswayed audit` and `unswayed clean` end here.

    Args:
        run: a finished run.
        evidence: see `unswayed.audits.audit`.
        top: labels that are shown.
        out: another file for the table.
        page: whether to write the report.
    """
    from unswayed.audits import audit
    from unswayed.audits.storage import write_audit
    from unswayed.files import write_json

    if out:
        check_target(Path(out), run)
    try:
        with data_progress():
            found = audit(run, evidence)
    except KeyboardInterrupt:
        print("the training is kept; the same command makes the audit", file=sys.stderr)
        raise
    write_audit(found, run)
    found.write(run.path / "audit.csv")
    write_json(run.path / "audit.json", found.summary())
    if out:
        found.write(out)
        print(f"written: {out}")
    if page:
        report(found, run, run.path / "report.html")
    if top > 0:
        console().print(table(found, top))
    print(found)
    folder = shlex.quote(str(run.path))
    print(f"look at them and decide: unswayed review {folder}")
    if page:
        print(f"the same on one page, to send to others: {run.path / 'report.html'}")
    print(f"all labels, worst first: {run.path / 'audit.csv'}")
    print(f"corrected labels, after the review: unswayed export {folder}")
    print(f"classify other images: unswayed predict {folder} IMAGE")
    return found


def check_target(out: Path, run: Run) -> None:
    """Refuse to write over anything but an earlier table of an audit."""
    data = run.recipe.sections["data"].get("path")
    ours = (b"rank,id,given", b'{"summary"', b"PAR1")
    is_data = data is not None and out.resolve() == Path(data).resolve()
    if is_data or (out.is_file() and not out.read_bytes()[:13].startswith(ours)):
        raise UsageError(f"--out: {out} is there and no table of an audit; choose another name")


def report(found: Audit, judged: Run, path: Path) -> None:
    """Write the page with the pictures of a run."""
    from unswayed.report.audit_page import write_report
    from unswayed.report.thumbnails import LARGE

    folder = shlex.quote(str(judged.path))
    with data_progress():
        write_report(
            found,
            path,
            title=f"Which labels are wrong: {judged.path.name or judged.path.resolve().name}",
            image=lambda row: judged.image(str(found.ids[row]), LARGE),
            facts=facts(found, judged),
            commands=[
                ("look at them one by one, and decide", f"unswayed review {folder}"),
                ("corrected labels", f"unswayed export {folder}"),
                ("classify other images", f"unswayed predict {folder} IMAGE"),
                *(
                    [("how good the model is", f"unswayed evaluate {folder}")]
                    if judged.provenance.data.test
                    else []
                ),
            ],
        )


def facts(found: Audit, judged: Run) -> dict[str, str]:
    """Return what was done and what it cost."""
    known, summary = judged.provenance, judged.summary
    data, hardware = known.data, known.hardware
    skipped = f"; {data.skipped:,} files could not be read" if data.skipped else ""
    time = clock(summary.seconds) + (" min" if summary.seconds < 3600 else "")
    threads = f", threads: {hardware.threads}" if hardware.device == "cpu" else ""
    last = summary.last
    scores = {"the test set": last.test_accuracy, "held-out given labels": last.holdout_accuracy}
    accuracy = [f"{100 * x:.1f} % on {what}" for what, x in scores.items() if x is not None]
    agreement = ", ".join(f"{name} {x:.2f}" for name, x in found.qualities.items())
    return {
        "data": f"{data.samples:,} images, {len(data.classes):,} classes{skipped}",
        **({"folder": data.root} if data.root else {}),
        "model": f"recipe {known.name}, method {known.method}, {summary.epochs} epochs",
        **({"accuracy": "; ".join(accuracy)} if accuracy else {}),
        "cost of training": f"{time} on {hardware.name}{threads}",
        "evidence": f"{found.evidence}, of those that were asked: {agreement} "
        "(how well each agrees with the others, at most 1)",
        "table": str(judged.path / "audit.csv"),
        "made with": f"unswayed {known.unswayed}, trained {known.started}, seed {known.seed}",
    }


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
