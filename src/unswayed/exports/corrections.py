"""What becomes of every label of a run: decisions of people, and suggestions that are accepted.

| decided        | what happens                                             |
| -------------- | -------------------------------------------------------- |
| relabel        | the new label                                            |
| none, remove   | the sample is left out                                   |
| keep, unsure   | nothing                                                  |
| disputed       | nothing, until somebody settles it                       |
| not decided    | nothing, or the suggestion if it is as probable as asked |
"""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.data import CORRECTED
from unswayed.data.corrected import read_labels
from unswayed.errors import UsageError
from unswayed.report.text import shortened
from unswayed.review import Review, open_review
from unswayed.review.verdicts import DISPUTED, NONE, OPEN, RELABEL, REMOVE, STATES
from unswayed.runs import Run

LEAST = 0.5
"""A suggestion that is less probable is more often wrong than right."""

What = Literal["relabel", "none", "remove", "accept"]


class Correction(NamedTuple):
    """A label that changes."""

    id: str
    old_label: str
    new_label: str | None  # None: the sample is left out
    decided_by: str
    p_wrong: float
    what: What


@dataclass(frozen=True)
class Corrections:
    """All labels of a run, and those that change."""

    run: Run
    ids: tuple[str, ...]
    given: tuple[str, ...]  # the labels that the run was trained on
    changes: tuple[Correction, ...]  # in the order of the samples
    disputed: int = 0
    strangers: int = 0  # decisions about other samples or labels
    mistakes: float = 0.0  # expected among the accepted suggestions
    warnings: tuple[str, ...] = ()  # of the audit, if suggestions are taken without a look
    too_unsure: str = ""  # why no suggestion was accepted, if some were asked for
    earlier: tuple[str, ...] = ()  # samples that were left out before this run was trained

    @cached_property
    def labels(self) -> dict[str, str | None]:
        """The label of each sample by id, None for one that is left out."""
        found: dict[str, str | None] = dict(zip(self.ids, self.given, strict=True))
        found |= {change.id: change.new_label for change in self.changes}
        return found | dict.fromkeys(self.earlier)

    @property
    def relabelled(self) -> list[Correction]:
        """Samples with another label."""
        return [change for change in self.changes if change.new_label is not None]

    @property
    def accepted(self) -> int:
        """How many labels change without a review."""
        return sum(change.what == "accept" for change in self.changes)

    def __str__(self) -> str:
        """Return what changes and by whom, in a few lines."""
        changed = self.relabelled
        people = Counter(shortened(change.decided_by, 60) for change in changed).most_common()
        by = ": " + "; ".join(f"{count:,} by {who}" for who, count in people) if people else ""
        removed = len(self.changes) - len(changed)
        lines = [
            f"{len(changed):,} of {len(self.ids):,} labels change{by}",
            *([f"{removed:,} samples are left out"] if removed else []),
        ]
        if self.accepted:
            lines.append(
                f"{self.accepted:,} labels change without review; {self.mistakes:.1f} of those "
                "changes are expected to be mistakes"
            )
        return "\n".join(lines + [f"note: {note}" for note in self.notes])

    @property
    def notes(self) -> list[str]:
        """What people should know, and may mend."""
        found = [*self.warnings, *([self.too_unsure] if self.too_unsure else [])]
        if self.disputed:
            folder = shlex.quote(str(self.run.path))
            found.append(
                f"{self.disputed:,} disputed labels stay as they were; settle them with: unswayed "
                f"review {folder}"
            )
        if self.strangers:
            found.append(f"{self.strangers:,} decisions are about other samples or labels")
        return found


def correct(run: Run, accept: float | None = None) -> Corrections:
    """Return what becomes of the labels of an audited run.

    Args:
        run: a finished run with an audit, and perhaps with decisions.
        accept: also take suggestions that are right with at least this probability.
    """
    check_accept(accept)
    review = open_review(run)
    found, verdicts = review.found, review.verdicts
    accepted = _accepted(review, accept)
    decided = np.isin(verdicts.state, (RELABEL, NONE, REMOVE))
    changes = [
        _correction(review, row, f"audit (P >= {accept:g})" if accepted[row] else "")
        for row in np.flatnonzero(decided | accepted).tolist()
    ]
    return Corrections(
        run=run,
        ids=tuple(found.ids),
        given=tuple(found.classes[k] for k in found.given),
        changes=tuple(changes),
        disputed=verdicts.count(DISPUTED),
        strangers=verdicts.strangers,
        mistakes=float((1 - review.p_suggested[accepted]).sum()),
        warnings=tuple(found.warnings) if accepted.any() else (),
        too_unsure="" if accept is None or accepted.any() else _too_unsure(review, accept),
        earlier=_earlier(run),
    )


def check_accept(accept: float | None) -> None:
    """Refuse what is no probability, or too small a one."""
    if accept is not None and not LEAST <= accept < 1:
        raise UsageError(
            f"--accept is a probability from {LEAST} to below 1, such as 0.95, not {accept:g}"
        )


def _accepted(review: Review, accept: float | None) -> NDArray[np.bool_]:
    """Return whose suggestion is taken, (N,)."""
    waiting = review.verdicts.state == OPEN
    if accept is None:
        return np.zeros_like(waiting)
    taken: NDArray[np.bool_] = waiting & (review.p_suggested >= accept)
    return taken


def _too_unsure(review: Review, accept: float) -> str:
    """Say how sure the audit is at the most."""
    surest = float(review.p_suggested[review.verdicts.state == OPEN].max(initial=0.0))
    said = (
        f"no suggestion is right with at least {accept:g}; the surest of those nobody decided: "
        f"{surest:.3f}"
    )
    if surest < LEAST:
        return f"{said}. So there is nothing left to accept"
    return f"{said}. Take a smaller --accept, or review some labels"


def _correction(review: Review, row: int, audit: str) -> Correction:
    found, verdicts = review.found, review.verdicts
    state = int(verdicts.state[row])
    label = found.suggested[row] if audit else verdicts.label[row]
    word: What = "accept" if audit else STATES[state]  # type: ignore[assignment]
    return Correction(
        id=found.ids[row],
        old_label=found.classes[found.given[row]],
        new_label=found.classes[label] if word in ("accept", "relabel") else None,
        decided_by=audit or ", ".join(verdicts.reviewers(row)),
        p_wrong=float(review.p_wrong[row]),
        what=word,
    )


def _earlier(run: Run) -> tuple[str, ...]:
    """Return the samples that the labels of this run left out."""
    file = run.recipe.sections["data"].get(CORRECTED)
    if not file:
        return ()
    out = {name for name, entry in read_labels(file).entries.items() if not entry.label}
    both = out.intersection(map(str, run.samples().ids))
    if both:
        raise UsageError(f"{file} has changed since {run.path} was trained: {min(both)!r} is out")
    return tuple(sorted(out))
