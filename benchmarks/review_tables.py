"""The tables of `benchmarks/review.py`, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from audit_measures import mean_and_spread

Case = dict[str, Any]
Group = list[Case]
ORDERS = {"ours": "ours", "cleanlab": "cleanlab", "random": "any order"}
EVERY = {**ORDERS, "audit": "the audit's first", "even": "the same, classes in turn"}
MARKS = (0, 250, 1000, 4000)
QUANTITIES = {
    "hidden": "wrong labels still hidden",
    "recall": "recall of the stop line",
    "mistakes": "the reviewer's mistakes",
}
NOTHING = "–"
Value = float | None

HEAD = """\
# What reviewing buys

Made by `python benchmarks/review.py --save results`; every number by setting and seed is in
[review.json](review.json), and [the study](../docs/review-study.md) says what was done. A reviewer
who knows the truth and errs in 2 % of the cases looks at labels in three orders. Cells are means ±
standard deviations over seeds, and how many seeds in brackets. A dash was not measured.
"""


def page(cases: Sequence[Case]) -> str:
    """Return all tables."""
    groups = grouped(cases)
    short = shown(cases)
    parts = [
        HEAD.rstrip("\n"),
        "## In short",
        short["summary"],
        "## Label noise",
        "Share of labels that differ from the truth after so many decisions, in percent.",
        short["noise"],
        "Wrong labels that were corrected, and right ones that the reviewer's errors spoilt.",
        by_decisions(groups, lambda point: point["corrected"], 0, starts=False),
        by_decisions(groups, lambda point: point["spoilt"], 0, starts=False),
        "## Test accuracy",
        "Of a network trained from scratch on the corrected labels, last epoch, in percent. The "
        "last column is trained on the true labels: no review can gain more than that, but for "
        "chance.",
        short["accuracy"],
        "What each seed gained over the training on the labels as they were given, in points.",
        short["gains"],
        "The epoch that the noisy hold-out chose, where the recipe holds labels out.",
        by_decisions(groups, _accuracy("selected"), 2, clean=True),
        "## What the review promised",
        "How many of the 90 % intervals hold the truth: at every 500 decisions and at those of the "
        "tables above. Those of one review hang together.",
        short["holds"],
        "At those of the tables above, means over seeds: the wrong labels still hidden and their "
        "interval, the share of wrong labels among the next fifty, the share of wrong labels above "
        "the audit's stop line, and the reviewer's mistakes, which really are 2 %.",
        promises(groups),
        "## To the stop line",
        "Everything above the stop line reviewed, as it stands then.",
        short["stops"],
        "## cleanlab's scores",
        "Average precision of each score in percent. For every seed the best one was taken, which "
        "only the truth can tell.",
        rivals(groups),
    ]
    return "\n\n".join(parts) + "\n"


def grouped(cases: Sequence[Case]) -> list[Group]:
    """Return the cases of each setting."""
    return [list(group) for _, group in groupby(cases, key=lambda case: case["setting"])]


def shown(cases: Sequence[Case]) -> dict[str, str]:
    """Return the tables that docs/review-study.md shows as well, by the names it has for them."""
    groups = grouped(cases)
    return {
        "summary": "\n".join(summary(groups)),
        "noise": by_decisions(groups, lambda point: 100 * point["noise"], 2),
        "accuracy": by_decisions(groups, _accuracy("last"), 2, clean=True),
        "gains": gains(groups),
        "holds": holds(groups),
        "stops": stops(groups),
    }


def filled(text: str, cases: Sequence[Case]) -> str:
    """Return a page with the tables of today between its marks `<!-- NAME -->`."""
    for name, new in shown(cases).items():
        mark, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if mark in text:
            before, _, rest = text.partition(mark)
            text = f"{before}{mark}\n\n{new}\n\n{end}{rest.partition(end)[2]}"
    return text


def cell(values: Iterable[Value], digits: int = 1, *, signed: bool = False) -> str:
    """Return mean, spread and number of the known values."""
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    mean, spread = mean_and_spread(known)
    text = f"{mean:{'+' if signed else ''},.{digits}f}"
    return (
        f"{text} ({len(known)})"
        if np.isnan(spread)
        else f"{text} ± {spread:,.{digits}f} ({len(known)})"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns are numbers but for the first, and that of orders."""
    ends = ["---" if name in (head[0], "order") else "---:" for name in head]
    lines = [head, ends, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _accuracy(which: str) -> Callable[[Case], Value]:
    def read(point: Case) -> Value:
        found = (point.get("accuracy") or {}).get(which)
        return None if found is None else 100 * found

    return read


def points_of(case: Case, order: str) -> dict[int, Case]:
    """Return what was measured in an order, by decisions; all orders begin alike."""
    found = {point["decisions"]: point for point in case["points"] if point["order"] == order}
    return {0: case["start"], **found}


def values_of(group: Group, order: str, mark: int, read: Callable[[Case], Value]) -> list[Value]:
    """Return a number of all seeds; None where it was not measured."""
    return [
        read(points[mark]) if mark in (points := points_of(case, order)) else None for case in group
    ]


def by_decisions(
    groups: Sequence[Group],
    read: Callable[[Case], Value],
    digits: int,
    *,
    starts: bool = True,
    clean: bool = False,
) -> str:
    """Return a table with a row for each setting and order, and a column for each number."""
    marks = MARKS if starts else MARKS[1:]
    rows = []
    for group in groups:
        for order, name in EVERY.items():
            row = [group[0]["title"], name]
            row += [cell(values_of(group, order, mark, read), digits) for mark in marks]
            if clean:
                row.append(cell((read(case.get("clean") or {}) for case in group), digits))
            if order in ORDERS or _is_known(row, starts=starts):
                rows.append(row)
    head = ["data", "order", *(f"{mark:,}" for mark in marks), *(["true labels"] if clean else [])]
    return table(head, rows)


def _is_known(row: Sequence[str], *, starts: bool) -> bool:
    """Return whether a row has more than the number that all orders begin with."""
    return any(each != NOTHING for each in row[3 if starts else 2 : 6])


def gain(group: Group, order: str, mark: int) -> list[Value]:
    """Return by how many points accuracy rose over the first training, seed by seed."""
    read = _accuracy("last")
    after, before = (values_of(group, order, n, read) for n in (mark, 0))
    return [
        None if one is None or other is None else one - other
        for one, other in zip(after, before, strict=True)
    ]


def gains(groups: Sequence[Group]) -> str:
    """Return the table of what accuracy gained."""
    rows = []
    for group in groups:
        for order, name in EVERY.items():
            row = [cell(gain(group, order, mark), 2, signed=True) for mark in MARKS[1:]]
            if order in ORDERS or set(row) != {NOTHING}:
                rows.append([group[0]["title"], name, *row])
    return table(["data", "order", *(f"{mark:,}" for mark in MARKS[1:])], rows)


def counted(groups: Iterable[Group], name: str) -> tuple[int, int]:
    """Return how many intervals of a quantity hold the truth, and how many there are."""
    every = [p[name] for group in groups for case in group for p in case["promises"]]
    known = [each["holds"] for each in every if each is not None]
    return sum(known), len(known)


def holds(groups: Sequence[Group]) -> str:
    """Return the table of intervals that hold."""
    rows = []
    for name, title in QUANTITIES.items():
        row = [title]
        for chosen in (*([group] for group in groups), groups):
            held, count = counted(chosen, name)
            row.append(f"{held} of {count}")
        rows.append(row)
    return table(["interval of", *(group[0]["title"] for group in groups), "all"], rows)


def promises(groups: Sequence[Group]) -> str:
    """Return the table of promises at some decisions."""
    rows = []
    for group in groups:
        for mark in MARKS:
            found = [p for case in group for p in case["promises"] if p["decisions"] == mark]
            if found:
                rows.append([group[0]["title"], f"{mark:,}", *_promise(found)])
    head = ["data", "decisions", "hidden: expected", "interval", "real", "next fifty: expected"]
    head += ["real", "recall: measured", "real", "mistakes: measured"]
    return table(head, rows)


def _promise(found: Sequence[Case]) -> list[str]:
    hidden, fifty = [p["hidden"] for p in found], [p["next_fifty"] for p in found]
    low, high = (np.mean([each[end] for each in hidden]) for end in ("low", "high"))
    row = [cell((each["value"] for each in hidden), 0), f"{low:,.0f} to {high:,.0f}"]
    row.append(cell((each["real"] for each in hidden), 0))
    row += [cell(_percent(fifty, end)) for end in ("value", "real")]
    recall, mistakes = ([p[name] for p in found if p[name]] for name in ("recall", "mistakes"))
    row += [cell(_percent(recall, end)) for end in ("value", "real")]
    return [*row, cell(_percent(mistakes, "value"))]


def _percent(found: Iterable[Case], name: str) -> list[Value]:
    return [None if each[name] is None else 100 * each[name] for each in found]


def stops(groups: Sequence[Group]) -> str:
    """Return the table of what was left where the review may stop."""
    rows = []
    for group in groups:
        for case in group:
            if stop := case["stop"]:
                hidden = stop["hidden"]
                row = [case["title"], str(case["seed"]), f"{case['wrong']:,}"]
                row += [f"{stop['decisions']:,}", f"{hidden['value']:,.0f}"]
                row += [f"{hidden['low']:,.0f} to {hidden['high']:,.0f}", f"{hidden['real']:,.0f}"]
                rows.append([*row, f"{100 * stop['noise']:.2f}", f"{stop['spoilt']:,}"])
    head = ["data", "seed", "wrong at first", "decisions", "left: expected", "interval", "real"]
    return table([*head, "label noise, %", "spoilt"], rows)


def rivals(groups: Sequence[Group]) -> str:
    """Return the table of cleanlab's scores."""
    names = sorted(
        {name for group in groups for c in group for name in c["cleanlab"]["ap_by_score"]}
    )
    rows = []
    for group in groups:
        chosen = Counter(case["cleanlab"]["score"] for case in group)
        row = [group[0]["title"]]
        row += [cell(100 * c["cleanlab"]["ap_by_score"][name] for c in group) for name in names]
        rows.append([*row, ", ".join(f"{name} {n}×" for name, n in chosen.most_common())])
    return table(["data", *names, "taken"], rows)


def summary(groups: Sequence[Group]) -> list[str]:
    """Return what the numbers say, in a few lines."""
    held, count = counted(groups, "hidden")
    stopped = [
        case["stop"]["hidden"]["holds"] for group in groups for case in group if case["stop"]
    ]
    lines = [
        f"- {held} of {count} intervals of 90 % hold the number of wrong labels still hidden; at "
        f"the stop line {sum(stopped)} of {len(stopped)}."
    ]
    for group in groups:
        last = max(point["decisions"] for case in group for point in case["points"])
        words = []
        for order, name in ORDERS.items():
            noise = cell(values_of(group, order, last, lambda point: 100 * point["noise"]), 2)
            words.append(f"{name} {noise}")
        start = cell(100 * case["start"]["noise"] for case in group)
        gained = (
            f"{name} {cell(gain(group, o, last), 2, signed=True)}" for o, name in ORDERS.items()
        )
        lines.append(
            f"- {group[0]['title']}: label noise in percent is {start} at first, and after "
            f"{last:,} decisions {', '.join(words)}. Test accuracy changes by "
            f"{', '.join(gained)} points."
        )
    return lines
