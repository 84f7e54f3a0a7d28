r"""How well wrong labels are found: the audit of finished runs whose true labels are known.

    python benchmarks/audit.py RUN... [--each] [--save results]

A run must have been trained on data with known wrong labels, for example

    unswayed train digits noise.rate=0.05 --run runs/audit-digits-5
    unswayed train cpu/cifar10 model.width=16 train.budget="0.02 PFLOP" train.holdout=0.1 \
        noise.name=symmetric noise.rate=0.2 --run runs/audit-cifar-sym20

Prints a Markdown table, and writes audit.json. AP and AUROC are of "the label is wrong". The
calibration error is the mean distance of P(wrong) from the share of wrong labels, in 15 bins of
equal size. `--each` also says what every single evidence reaches, which only the truth can tell.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import hardware, save
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from unswayed.audits import audit
from unswayed.audits.evidence import EVIDENCE
from unswayed.runs import Run

BINS = 15


def calibration_error(p: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Return how far P(wrong) is from the share of wrong labels, on average over equal bins."""
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(sum(len(b) * abs(p[b].mean() - wrong[b].mean()) for b in bins) / len(p))


def measure(run: Run, *, each: bool) -> dict[str, Any]:
    """Audit a run, and compare with the truth."""
    samples = run.samples()
    if samples.true is None:
        raise SystemExit(f"{run.path}: the true labels are not known")
    wrong = samples.given != samples.true
    began = time.process_time()
    found = audit(run)
    seconds = time.process_time() - began
    first = found.order[: int(wrong.sum())]
    hits = first[wrong[first]]
    single = {
        name: round(float(average_precision_score(wrong, audit(run, name).p_wrong)), 4)
        for name in (EVIDENCE.names() if each else ())
    }
    return {
        "run": run.path.name,
        "samples": len(wrong),
        "rate": round(float(wrong.mean()), 4),
        "estimated": [round(x, 4) for x in found.noise[:3]],
        "ap": round(float(average_precision_score(wrong, found.p_wrong)), 4),
        "auroc": round(float(roc_auc_score(wrong, found.p_wrong)), 4),
        "precision_at_n": round(float(wrong[first].mean()), 4),
        "calibration_error": round(calibration_error(found.p_wrong, wrong), 4),
        "suggestions_right": round(float((found.suggested[hits] == samples.true[hits]).mean()), 4),
        "to_review": found.to_review,
        "expected_wrong": round(found.expected_wrong(found.to_review), 1),
        "really_wrong": int(wrong[found.order[: found.to_review]].sum()),
        "evidence": found.evidence,
        "ap_by_evidence": single,
        "cpu_seconds": round(seconds, 1),
        "training_seconds": round(run.summary.seconds, 1),
    }


def row(each: dict[str, Any]) -> str:
    """Return a line of the table."""
    rate, low, high = (100 * x for x in each["estimated"])
    cells = (
        each["run"],
        f"{100 * each['rate']:.1f} %",
        f"{rate:.1f} % ({low:.1f} to {high:.1f})",
        f"{100 * each['ap']:.1f}",
        f"{100 * each['calibration_error']:.1f}",
        str(each["evidence"]),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure all runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--each", action="store_true", help="every single evidence as well")
    parser.add_argument("--save", metavar="DIR", help="write audit.json there")
    args = parser.parse_args()
    found = []
    for path in args.runs:
        found.append(measure(Run(path), each=args.each))
        print(row(found[-1]), flush=True)
    if args.save:
        text = {"command": "python benchmarks/audit.py", "hardware": hardware(), "runs": found}
        save(text, Path(args.save), "audit.json")


if __name__ == "__main__":
    main()
