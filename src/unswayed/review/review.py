"""A review: the queue, its filters, decisions, and what is left to find.

It knows nothing of the page and the server. `benchmarks/review.py` drives it as they do.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from unswayed.audits.result import FLAGS, STOP, Audit
from unswayed.audits.storage import read_audit
from unswayed.errors import UsageError
from unswayed.review import rechecks
from unswayed.review.journal import (
    FILE,
    LONGEST_NAME,
    Choice,
    Event,
    How,
    Journal,
    new_key,
    now,
    unknown,
)
from unswayed.review.recalibration import NINETY, Expected, Recalibrated, recalibrate
from unswayed.review.verdicts import (
    DISPUTED,
    KEEP,
    NONE,
    OPEN,
    RELABEL,
    REMOVE,
    UNSURE,
    Verdicts,
)
from unswayed.runs import Run

STEP = 20
"""Decisions after which P(wrong) is fitted again; more often, the queue would never rest."""

SHARE = 0.05
"""Of the queue that is blind re-checks."""

REPEATS = 3
"""Every so many re-checks, one is a second look at an earlier decision."""

FORGOTTEN = 40
"""Decisions after which a sample may be asked about again."""

Rows = NDArray[np.int64]
Vector = NDArray[np.float64]
Tab = Literal["queue", "ambiguous", "outlier", "conflict", "disputed"]
TABS: tuple[Tab, ...] = get_args(Tab)


class Filter(BaseModel):
    """Which samples to show."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tab: Tab = "queue"
    given: int | None = Field(default=None, ge=0)
    suggested: int | None = Field(default=None, ge=0)
    low: float = Field(default=0.0, ge=0, le=1)
    high: float = Field(default=1.0, ge=0, le=1)
    split: Literal["any", "trained", "held out"] = "any"
    decided: Literal["no", "yes", "any"] = "no"
    text: str = Field(default="", max_length=200)

    @property
    def is_plain(self) -> bool:
        """Whether this is the queue as it comes, into which re-checks are mixed."""
        return self == Filter()


class Slot(NamedTuple):
    """A place in the queue."""

    row: int
    how: How = "single"  # what a decision there will count as
    blind: bool = False  # whether the numbers are hidden


class Progress(NamedTuple):
    """Where a review stands."""

    reviewed: int  # samples that somebody looked at and decided about
    wrong: int  # of which the label was wrong
    unseen: int  # suggestions that were accepted without a look
    removed: int
    unsure: int
    disputed: int
    looked: int  # decisions by eye that P(wrong) is fitted to
    fitted: int  # how many of them it is fitted to now
    to_stop: int  # undecided samples above the stop line
    first_stop: int  # samples above the line that the audit drew
    next_fifty: float | None  # expected share of wrong labels among the next fifty
    hidden: Expected  # wrong labels among all undecided samples
    recall: Expected | None
    rechecked: int
    mistakes: Expected | None
    repeated: int


class Bulk(NamedTuple):
    """What a decision about many samples would do."""

    samples: int
    expected_right: float  # suggestions among them that are right


def open_review(run: Run, recheck: float = SHARE) -> Review:
    """Open the review of an audited run.

    >>> import unswayed
    >>> from unswayed.audits.storage import write_audit
    >>> from unswayed.review import Filter, open_review
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> write_audit(unswayed.audit(run), run)
    >>> review = open_review(run)
    >>> (first,) = review.slots(Filter(), 0, 1, "me")
    >>> review.decide(first, "keep", "me")
    >>> review.progress().reviewed
    1
    """
    facts = run.provenance
    return Review(
        read_audit(run),
        run.path / FILE,
        holdout=run.samples().holdout,
        recheck=recheck,
        secret=f"{facts.data.fingerprint} {facts.started}",
    )


class Review:
    """The audit of a run, and the decisions about it."""

    def __init__(
        self,
        found: Audit,
        path: Path,
        *,
        holdout: Sequence[int] | Rows = (),
        recheck: float = SHARE,
        secret: str = "",
    ) -> None:
        """Open the review that is kept in a journal.

        Args:
            found: the audit.
            path: of the journal.
            holdout: rows that were not trained on.
            recheck: share of blind re-checks.
            secret: keeps the page from telling which samples are re-checks.
        """
        if not 0 <= recheck <= 0.5:
            raise UsageError(f"--recheck must lie between 0 and 0.5, not {recheck:g}")
        self.found, self.share = found, recheck
        self.verdicts = Verdicts(found.ids, found.classes, found.given)
        self.journal = Journal(path)
        self.lock = RLock()
        self.held_out = np.zeros(len(found), dtype=bool)
        self.held_out[np.asarray(holdout, dtype=np.int64)] = True
        self._secret = hashlib.blake2b(secret.encode(), digest_size=32).digest()
        rng = np.random.default_rng(0)
        self._unsuspected = rng.permutation(np.flatnonzero(found.p_wrong < STOP))
        self._jitter = rng.random(len(found))
        self._blind = rng.random(len(found)) < recheck
        self._lower = [name.casefold() for name in self.verdicts.ids]
        self._flagged = {word: np.zeros(len(found), dtype=bool) for word in FLAGS}
        for row, words in found.flags.items():
            for word in words.split():
                self._flagged[word][row] = True
        self._groups = {row: group for group in found.groups for row in group}
        self._fitted, self._fitted_to = -1, b""
        self.fit: Recalibrated
        self.refresh()

    # What is known -----------------------------------------------------------------------------

    @property
    def p_wrong(self) -> Vector:
        """P(wrong) of all labels, corrected by what was decided; (N,)."""
        return self.fit.p_wrong

    @property
    def p_suggested(self) -> Vector:
        """The probability that each suggestion is right, corrected in the same way; (N,)."""
        before = np.maximum(self.found.p_wrong, 1e-12)
        found: Vector = np.minimum(self.found.p_suggested * self.p_wrong / before, self.p_wrong)
        return found

    @property
    def identity(self) -> str:
        """What tells this run from others, also from one of the same name."""
        return hashlib.blake2b(b"identity", digest_size=9, key=self._secret).hexdigest()

    @property
    def version(self) -> int:
        """Changes when P(wrong) is fitted again."""
        return zlib.crc32(self._fitted_to)

    def refresh(self) -> None:
        """Read what was added to the journal, and fit P(wrong) if there is enough that is new."""
        with self.lock:
            self.verdicts.apply(self.journal.refresh())
            self._refit()

    def _refit(self, *, at_once: bool = False) -> None:
        """Fit P(wrong) after every `STEP` decisions, or at once if earlier ones have changed."""
        rows, wrong = self.verdicts.said_wrong()
        count = len(rows) // STEP * STEP
        if count == self._fitted and not at_once:
            return
        self._fitted_to = rows[:count].tobytes() + wrong[:count].tobytes()
        noise = self.found.noise
        self.fit = recalibrate(
            self.found.p_wrong,
            self.found.given,
            len(self.found.classes),
            rows[:count],
            wrong[:count],
            mistakes=rechecks.usual_mistakes(*self.verdicts.repeats()),
            rate_error=(noise.high - noise.low) / (2 * NINETY),
        )
        self._fitted = count
        self._order = np.argsort(-self.fit.p_wrong, kind="stable")

    # The queue ---------------------------------------------------------------------------------

    def rows(self, chosen: Filter) -> Rows:
        """Return the samples that a filter lets through, the most suspicious first."""
        with self.lock:
            found: Rows = self._order[self.matching(chosen)[self._order]]
            return self._grouped(found) if chosen.tab == "conflict" else found

    def matching(self, chosen: Filter) -> NDArray[np.bool_]:
        """Return which samples a filter lets through, (N,)."""
        found, p = self.found, self.p_wrong
        keep = self._in_tab(chosen) & (p >= chosen.low) & (p <= chosen.high)
        if chosen.given is not None:
            keep &= found.given == chosen.given
        if chosen.suggested is not None:
            keep &= found.suggested == chosen.suggested
        if chosen.split != "any":
            keep &= self.held_out == (chosen.split == "held out")
        if chosen.text:
            wanted = chosen.text.casefold()
            for row in np.flatnonzero(keep).tolist():
                keep[row] = wanted in self._lower[row]
        return keep

    def _in_tab(self, chosen: Filter) -> NDArray[np.bool_]:
        """Return which samples a tab holds; disputed ones are decided, and still to be settled."""
        state = self.verdicts.state
        keep: NDArray[np.bool_] = np.ones(len(state), dtype=bool)
        if chosen.tab == "disputed":
            keep &= state == DISPUTED
            return keep
        if chosen.decided != "any":
            keep &= (state == OPEN) == (chosen.decided == "no")
        if chosen.tab != "queue":
            keep &= self._flagged[chosen.tab]
        return keep

    def _grouped(self, rows: Rows) -> Rows:
        """Return rows so that groups of duplicates stay together, the most suspicious first."""
        wanted = set(rows.tolist())
        placed = dict.fromkeys(
            member
            for row in rows.tolist()
            for member in (row, *self._groups.get(row, ()))
            if member in wanted
        )
        return np.fromiter(placed, dtype=np.int64, count=len(placed))

    def tabs(self) -> dict[Tab, int]:
        """Return how many samples wait in each tab."""
        return {tab: int(self._in_tab(Filter(tab=tab)).sum()) for tab in TABS}

    def slots(self, chosen: Filter, start: int, count: int, reviewer: str) -> list[Slot]:
        """Return a stretch of the queue; re-checks are mixed in if nothing is filtered."""
        with self.lock:
            rows = self.rows(chosen)
            if not chosen.is_plain or not self.share:
                return [Slot(row) for row in rows[start : start + count].tolist()]
            return self._mixed(rows, start + count, reviewer)[start:]

    def _mixed(self, rows: Rows, count: int, reviewer: str) -> list[Slot]:
        """Mix re-checks into the first rows.

        Re-check number m comes about m / share decisions after the first, never at a place that
        can be foretold.
        """
        state, verdicts = self.verdicts.state, self.verdicts
        waiting = iter(self._unsuspected[state[self._unsuspected] == OPEN].tolist())
        again = self._forgotten(reviewer)
        decided = int((state != OPEN).sum())
        made = sum(state[row] != OPEN for row in verdicts.rechecked) + len(verdicts.repeated)
        found: list[Slot] = []
        taken: set[int] = set()
        suspects = iter(rows.tolist())
        while len(found) < count:
            if made < len(self._jitter) and (made + self._jitter[made]) / self.share <= decided:
                second = made % REPEATS == REPEATS - 1
                row = next(again if second else waiting, None)
                made += 1
                if row is not None and row not in taken:
                    how: How = "repeat" if second else "recheck"
                    found.append(Slot(row, how, blind=True))
                    taken.add(row)
                    decided += 1
                    continue
            row = next((row for row in suspects if row not in taken), None)
            if row is None:
                break
            taken.add(row)
            found.append(Slot(row, blind=bool(self._blind[row] and self.p_wrong[row] >= STOP)))
            decided += 1
        return found

    def _forgotten(self, reviewer: str) -> Iterator[int]:
        """Yield samples that this reviewer alone decided about a while ago, and once."""
        verdicts = self.verdicts
        decided = np.flatnonzero(np.isin(verdicts.state, (KEEP, RELABEL, NONE)) & verdicts.looked)
        old = decided[verdicts.last[decided] <= verdicts.last.max(initial=0) - FORGOTTEN]
        for row in old[np.argsort(self._jitter[old], kind="stable")].tolist():
            if row not in verdicts.repeated and verdicts.reviewers(row) == [reviewer]:
                yield row

    def name_of(self, slot: Slot) -> str:
        """Return a name of a place in the queue, which does not tell what it is."""
        word = f"{slot.how}:{slot.row}:{int(slot.blind)}".encode()
        return hashlib.blake2b(word, digest_size=9, key=self._secret).hexdigest()

    def slot_of(self, row: int, name: str) -> Slot:
        """Return the place with this name; it may be that of another run."""
        kinds = [
            Slot(row),
            *(Slot(row, how, blind=True) for how in ("single", "recheck", "repeat")),
        ]
        for slot in kinds:
            if self.name_of(slot) == name:
                return slot
        raise UsageError("the page is not that of this run; reload it")

    def twins(self, row: int) -> list[int]:
        """Return the samples that show nearly the same."""
        return [other for other in self._groups.get(row, ()) if other != row]

    # Decisions ---------------------------------------------------------------------------------

    def decide(
        self,
        slot: Slot,
        decision: Choice,
        reviewer: str,
        *,
        label: int | None = None,
        key: str = "",
        settles: bool = False,
    ) -> None:
        """Write a decision to the journal; one with a key that is there already is left out.

        Args:
            slot: the place in the queue.
            decision: what is said.
            reviewer: who says it.
            label: the new one, of "relabel".
            key: the name of this decision; a new one if it is not given.
            settles: overrule earlier decisions that differ, because they were seen.
        """
        with self.lock:
            self.refresh()
            if key and key in self.verdicts.keys:
                return
            how = slot.how
            if settles and how == "single" and self.verdicts.state[slot.row] == DISPUTED:
                how = "settle"
            event = self._event(slot.row, decision, reviewer, label, how, key or new_key())
            self._append([event])

    def _event(
        self, row: int, decision: Choice, reviewer: str, label: int | None, how: How, key: str
    ) -> Event:
        if not 0 <= row < len(self.found):
            raise UsageError(f"there is no row {row}")
        if (decision == "relabel") != (label is not None):
            raise UsageError("a new label belongs to the decision 'relabel', and to no other")
        if label is not None and not 0 <= label < len(self.found.classes):
            raise UsageError(f"there is no class {label}")
        names = self.verdicts.classes
        written = [self.verdicts.ids[row], names[self.found.given[row]], names[label or 0]]
        if max(map(len, written)) > LONGEST_NAME:
            raise UsageError(
                f"the id or a class of row {row} has more than {LONGEST_NAME:,} characters"
            )
        return Event(
            key=key,
            time=now(),
            reviewer=reviewer,
            id=self.verdicts.ids[row],
            decision=decision,
            label=None if label is None else names[label],
            given=names[self.found.given[row]],
            how=how,
        )

    def _append(self, events: Sequence[Event]) -> None:
        self.verdicts.apply(self.journal.append(events))
        self._refit()

    def preview(self, chosen: Filter) -> Bulk:
        """Return what accepting all suggestions of a filter would do."""
        with self.lock:
            rows = self._open_rows(chosen)
            return Bulk(len(rows), float(self.p_suggested[rows].sum()))

    def _open_rows(self, chosen: Filter) -> Rows:
        rows = self.rows(chosen.model_copy(update={"decided": "no"}))
        waiting: Rows = rows[self.verdicts.state[rows] == OPEN]
        return waiting

    def accept_all(self, chosen: Filter, reviewer: str, expected: int, key: str = "") -> int:
        """Accept all suggestions of a filter as one decision, and return how many.

        Args:
            chosen: which samples.
            reviewer: who says so.
            expected: how many were shown; another number means that something has changed.
            key: see `decide`.
        """
        with self.lock:
            self.refresh()
            # The same key again: an answer was lost, or a crash left a part of it.
            before = len(self.verdicts.keys.get(key, ())) if key else 0
            if before == expected:
                return before
            rows = self._open_rows(chosen).tolist()
            if len(rows) + before != expected:
                raise UsageError(f"{len(rows)} samples match now, not {expected}; look again")
            key = key or new_key()
            suggested = self.found.suggested
            self._append(
                [
                    self._event(row, "relabel", reviewer, int(suggested[row]), "bulk", key)
                    for row in rows
                ]
            )
            return expected

    def undo(self, reviewer: str, *, redo: bool = False, of: str | None = None) -> list[Slot]:
        """Undo or redo the last decision of a reviewer, and return its places in the queue.

        Args:
            reviewer: whose decision.
            redo: bring the last one back that was undone.
            of: the key that is expected to be the last; another one is not touched.
        """
        with self.lock:
            self.refresh()
            verdicts = self.verdicts
            last = verdicts.can_redo(reviewer) if redo else verdicts.can_undo(reviewer)
            if of is not None and of != last:
                raise UsageError("something else was decided since; look again, then undo")
            of = last
            if of is None:
                return []
            word: Literal["undo", "redo"] = "redo" if redo else "undo"
            event = Event(key=new_key(), time=now(), reviewer=reviewer, decision=word, of=of)
            self._append([event])
            how = verdicts.how[of]
            blind = how in ("recheck", "repeat")
            return [Slot(row, how if blind else "single", blind) for row in verdicts.keys[of]]

    def merge(self, events: Sequence[Event], where: str) -> int:
        """Add the events of another journal that are new, and return how many."""
        with self.lock:
            self.refresh()
            self.verdicts.check(events, where)
            new = unknown(events, self.journal.events)
            if new:
                self._append(new)
                self._refit(at_once=True)
            return len(new)

    # Where it stands ---------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Return what was done, and what is probably left."""
        with self.lock:
            verdicts, state = self.verdicts, self.verdicts.state
            waiting = self._order[state[self._order] == OPEN]
            differing, repeats = verdicts.repeats()
            said, checked = verdicts.rechecks()
            return Progress(
                reviewed=int(verdicts.looked.sum()),
                wrong=int((verdicts.looked & np.isin(state, (RELABEL, NONE))).sum()),
                unseen=int(((state != OPEN) & ~verdicts.looked).sum()),
                removed=verdicts.count(REMOVE),
                unsure=verdicts.count(UNSURE),
                disputed=verdicts.count(DISPUTED),
                looked=len(verdicts.said_wrong()[0]),
                fitted=self._fitted,
                to_stop=int((self.p_wrong[waiting] >= STOP).sum()),
                first_stop=self.found.to_review,
                next_fifty=float(self.p_wrong[waiting[:50]].mean()) if len(waiting) else None,
                hidden=self.fit.expected_wrong(waiting),
                recall=rechecks.recall(
                    self._suspected_wrong(),
                    said,
                    checked,
                    int((state[self._unsuspected] == OPEN).sum()) + checked,
                    differing,
                    repeats,
                    self._known_missed(),
                ),
                rechecked=checked,
                mistakes=rechecks.mistakes(differing, repeats),
                repeated=repeats,
            )

    def _suspected_wrong(self) -> float:
        """Return how many labels above the audit's stop line are wrong, or expected to be."""
        above = self.found.p_wrong >= STOP
        state, looked = self.verdicts.state, self.verdicts.looked
        sure = looked & np.isin(state, (KEEP, RELABEL, NONE))
        known = int((above & sure & (state != KEEP)).sum())
        return known + float(self.p_wrong[above & ~sure & (state != REMOVE)].sum())

    def _known_missed(self) -> tuple[int, int]:
        """Return how many unsuspected labels are said to be wrong, of how many, without checks."""
        state = self.verdicts.state
        judged = (self.found.p_wrong < STOP) & np.isin(state, (KEEP, RELABEL, NONE))
        judged[list(self.verdicts.rechecked)] = False
        return int((judged & (state != KEEP)).sum()), int(judged.sum())
