"""The tables of `benchmarks/audit.py`, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from audit_measures import mean_and_spread

Case = dict[str, Any]
RIVALS = {
    "ce-3": "3 folds, cross entropy",
    "ce-5": "5 folds, cross entropy",
    "gce-3": "3 folds, our loss",
    "logistic": "logistic, C = 1",
    "logistic-best-c": "logistic, best C",
    "neighbours": "10 neighbours",
}
"""What cleanlab is given, in the order of the columns."""

HEAD = """\
# How well wrong labels are found

Made by `python benchmarks/audit.py --save results`; every number by setting and seed is in
[audit.json](audit.json), and `benchmarks/audit.py` says what the settings are. Numbers are means
over n seeds, ± their standard deviation, in percent or in points. AP is the average precision of
"the label is wrong".

Rivals are cleanlab on out-of-sample probabilities of the same data. *Folds*: cross-validated
networks of the same kind, which together cost as much computation as our one training, rounded up
to whole epochs. *Logistic* and *neighbours*: models over the features that our audit uses. Of all
label-quality scores of cleanlab, the one with the best AP counts, which only the truth can tell.
"""


def page(cases: Sequence[Case]) -> str:
    """Return all tables."""
    groups = [list(group) for _, group in groupby(cases, key=lambda case: case["setting"])]
    parts = [
        HEAD.rstrip("\n"),
        "## In short",
        "\n".join(_summary(cases)),
        "## Average precision",
        _precision_table(groups),
        "## Share of wrong labels",
        "The interval is the mean of the 90 % intervals; *holds* says how many hold the truth.",
        _rate_table(groups),
        "## Our audit",
        "Expected and real: the share of wrong labels among those to review, and among the first "
        "half as many as are wrong. *Suggestions*: right ones among the hits of the first N, if N "
        "labels are wrong.",
        _our_table(groups),
        "## Single evidences",
        "AP of each evidence alone, and what the choice between them loses against the best one.",
        _evidence_table(groups),
        "## Rivals",
        "*Calibration error* is that of 1 - self-confidence.",
        _rival_table(groups),
        "## Cost",
        "CPU seconds of one core. The last pass over all samples ends every training.",
        _cost_table(groups),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(cases: Sequence[Case]) -> list[str]:
    covered = sum(case["ours"]["rate"]["covers"] for case in cases)
    lines = [f"- {covered} of {len(cases)} intervals of 90 % hold the real share of wrong labels."]
    worst = max(cases, key=_loss)
    lines.append(
        f"- Against the best single evidence the choice loses at most {100 * _loss(worst):.1f} "
        f"points of AP ({worst['title']}, seed {worst['seed']})."
    )
    for name, title in RIVALS.items():
        gains = [c["ours"]["ap"] - c["rivals"][name]["ap"] for c in cases if name in c["rivals"]]
        if gains:
            low, high = 100 * min(gains), 100 * max(gains)
            lines.append(
                f"- AP of ours less that of cleanlab ({title}): {_cell(gains, signed=True)} "
                f"points, from {low:+.1f} to {high:+.1f}, n = {len(gains)}."
            )
    shares = [share for case in cases if (share := _share_after(case)) is not None]
    if shares:
        lines.append(
            f"- Everything after the training of the largest data takes {_cell(shares)} % of its "
            "CPU time."
        )
    return lines


def _loss(case: Case) -> float:
    """Return how much AP the choice of an evidence loses against the best single one."""
    return float(max(case["ap_by_evidence"].values()) - case["ours"]["ap"])


def _share_after(case: Case) -> float | None:
    """Return what follows a training as a share of it, for data of 50,000 samples or more."""
    own = case["ours"]
    if case["samples"] < 50_000 or own["cpu_seconds"] is None:
        return None
    return float((own["finish_cpu_seconds"] + own["audit_cpu_seconds"]) / own["cpu_seconds"])


def _cell(values: Iterable[float | None], scale: float = 100, *, signed: bool = False) -> str:
    """Return mean and spread of the known values as text."""
    known = [scale * value for value in values if value is not None]
    if not known:
        return ""
    mean, spread = mean_and_spread(known)
    text = f"{mean:+.1f}" if signed else f"{mean:.1f}"
    return text if np.isnan(spread) else f"{text} ± {spread:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _own(group: Sequence[Case], name: str) -> list[float]:
    return [case["ours"][name] for case in group]


def _precision_table(groups: Sequence[list[Case]]) -> str:
    names = [name for name in RIVALS if any(name in case["rivals"] for g in groups for case in g)]
    rows = []
    for group in groups:
        row = [group[0]["title"], str(len(group)), _cell(case["rate"] for case in group)]
        row.append(_cell(_own(group, "ap")))
        for name in names:
            aps = [case["rivals"][name]["ap"] for case in group if name in case["rivals"]]
            row.append(_with_n(aps, len(group)))
        rows.append(row)
    return _table(["data", "n", "wrong", "ours", *(RIVALS[name] for name in names)], rows)


def _with_n(values: Sequence[float], usual: int) -> str:
    """Return a cell that says n if it differs from that of the row."""
    return _cell(values) + (f" (n = {len(values)})" if 0 < len(values) < usual else "")


def _rate_table(groups: Sequence[list[Case]]) -> str:
    rows = []
    for group in groups:
        rates = [case["ours"]["rate"] for case in group]
        low, high = (np.mean([100 * rate[end] for rate in rates]) for end in ("low", "high"))
        row = [group[0]["title"], str(len(group)), _cell(case["rate"] for case in group)]
        row += [_cell(rate["estimated"] for rate in rates), f"{low:.1f} to {high:.1f}"]
        row.append(f"{sum(rate['covers'] for rate in rates)} of {len(rates)}")
        for source in ("ce-3", "logistic-best-c"):
            for name in ("rate_by_joint", "rate_by_issues"):
                found = [c["rivals"][source][name] for c in group if source in c["rivals"]]
                row.append(_with_n(found, len(group)))
        rows.append(row)
    head = ["data", "n", "wrong", "ours", "interval", "holds"]
    for source in ("3 folds", "logistic"):
        head += [f"cleanlab, {source}, joint", f"{source}, issues"]
    return _table(head, rows)


def _our_table(groups: Sequence[list[Case]]) -> str:
    rows = []
    for group in groups:
        chosen = Counter(case["ours"]["evidence"] for case in group)
        row = [group[0]["title"]]
        row += [_cell(_own(group, name)) for name in ("auroc", "precision_at_n")]
        row.append(_cell(_own(group, "calibration_error")))
        for place in ("review", "half"):
            found = [case["ours"][place] for case in group]
            row += [_cell(each[side] for each in found) for side in ("expected", "real")]
        row.append(_cell(_own(group, "suggestions_right")))
        row.append(", ".join(f"{name} {count}×" for name, count in chosen.most_common()))
        rows.append(row)
    head = ["data", "AUROC", "precision at N", "calibration error", "review: expected", "real"]
    return _table([*head, "N/2: expected", "real", "suggestions", "evidence"], rows)


def _evidence_table(groups: Sequence[list[Case]]) -> str:
    names = sorted({name for group in groups for case in group for name in case["ap_by_evidence"]})
    rows = []
    for group in groups:
        row = [group[0]["title"], _cell(_own(group, "ap"))]
        for name in names:
            each = [c["ap_by_evidence"][name] for c in group if name in c["ap_by_evidence"]]
            row.append(_with_n(each, len(group)))
        rows.append([*row, f"{100 * max(map(_loss, group)):.1f}"])
    return _table(["data", "chosen", *names, "largest loss"], rows)


def _rival_table(groups: Sequence[list[Case]]) -> str:
    rows = []
    for group in groups:
        for name, title in RIVALS.items():
            found = [case["rivals"][name] for case in group if name in case["rivals"]]
            if found:
                scores = Counter(each["score"] for each in found)
                row = [group[0]["title"], title, str(len(found))]
                for what in ("ap", "auroc", "precision_at_n", "calibration_error"):
                    row.append(_cell(each[what] for each in found))
                row.append(_cell(each["suggestions_right"] for each in found))
                rows.append([*row, ", ".join(f"{s} {n}×" for s, n in scores.most_common())])
    head = ["data", "cleanlab on", "n", "AP", "AUROC", "precision at N", "calibration error"]
    return _table([*head, "suggestions", "best score"], rows) if rows else ""


def _cost_table(groups: Sequence[list[Case]]) -> str:
    rows = []
    for group in groups:
        own = [case["ours"] for case in group]
        row = [group[0]["title"], _cell((each.get("pflop") for each in own), 1000)]
        for name in ("cpu_seconds", "finish_cpu_seconds", "audit_cpu_seconds"):
            row.append(_cell((each.get(name) for each in own), 1))
        for name in ("ce-3", "ce-5"):
            found = [case["rivals"][name] for case in group if name in case["rivals"]]
            row.append(_cell((each["pflop"] for each in found), 1000))
            row.append(_cell((each["cpu_seconds"] for each in found), 1))
        rows.append(row)
    head = ["data", "TFLOP", "training", "last pass", "audit"]
    return _table([*head, "3 folds: TFLOP", "s", "5 folds: TFLOP", "s"], rows)
