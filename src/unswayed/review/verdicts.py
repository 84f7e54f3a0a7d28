"""What the events of a journal mean: for every sample, what was decided and by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import UsageError
from unswayed.review.journal import Event, How

STATES = ("open", "keep", "relabel", "none", "unsure", "remove", "disputed")
OPEN, KEEP, RELABEL, NONE, UNSURE, REMOVE, DISPUTED = range(len(STATES))
"""What is known of a label. `none`: no class fits. `disputed`: two decisions differ."""

Rows = NDArray[np.int64]


class Opinion(NamedTuple):
    """What somebody decided."""

    state: int
    label: int  # of RELABEL; otherwise -1
    reviewer: str
    again: bool = False  # on a blind second look

    @property
    def said(self) -> tuple[int, int]:
        """What can be compared with another opinion."""
        return self.state, self.label


def plain(text: str) -> str:
    """Return an id without broken Unicode, which JSON cannot carry."""
    return text.encode("utf-8", "backslashreplace").decode()


class Verdicts:
    """The state of every sample after some events."""

    def __init__(self, ids: Sequence[str], classes: Sequence[str], given: Rows) -> None:
        self.classes, self.given = [plain(name) for name in classes], given
        self._number = {name: k for k, name in enumerate(self.classes)}
        self.ids = [plain(name) for name in ids]
        self.rows = {name: row for row, name in enumerate(self.ids)}
        self.state = np.full(len(given), OPEN, dtype=np.int8)
        self.label = np.full(len(given), -1, dtype=np.int64)  # the new one, of RELABEL
        self.looked = np.zeros(len(given), dtype=bool)  # decided by somebody who looked at it
        self.last = np.full(len(given), -1, dtype=np.int64)  # number of the last event
        self.repeated: set[int] = set()
        self.rechecked: set[int] = set()
        self.keys: dict[str, list[int]] = defaultdict(list)  # key -> rows
        self.how: dict[str, How] = {}  # key -> how it was decided
        self.strangers = 0  # events about samples or classes that are not there
        self._events: dict[int, list[tuple[int, Event]]] = defaultdict(list)
        self._count = 0
        self._undone: set[str] = set()
        self._done: dict[str, list[str]] = defaultdict(list)  # reviewer -> keys
        self._redoable: dict[str, list[str]] = defaultdict(list)
        self._early: dict[str, Event] = {}  # undone before it was merged: key -> the undo

    def apply(self, events: Iterable[Event]) -> None:
        """Take more events of the journal."""
        changed: set[int] = set()
        for event in events:
            self._count += 1
            if event.decision in ("undo", "redo"):
                changed.update(self._turn(event))
            elif (row := self._row_of(event)) is None:
                self.strangers += 1
            else:
                self._events[row].append((self._count, event))
                self._note(event, row)
                changed.add(row)
        for row in changed:
            self._settle(row)

    def _row_of(self, event: Event) -> int | None:
        """Return the row of an event that fits these data."""
        row = self.rows.get(event.id)
        if row is None or (event.decision == "relabel" and event.label not in self._number):
            return None
        if event.given and event.given != self.classes[self.given[row]]:
            return None
        return row

    def check(self, events: Iterable[Event], where: str) -> None:
        """Refuse events that are not about these samples, labels and classes."""
        for event in events:
            if event.decision in ("undo", "redo"):
                continue
            if event.id not in self.rows:
                raise UsageError(f"{where}: no sample of this run is called {event.id!r}")
            given = self.classes[self.given[self.rows[event.id]]]
            if event.given and event.given != given:
                raise UsageError(
                    f"{where} judged another label of {event.id!r}: {event.given!r}, here {given!r}"
                )
            if event.decision == "relabel" and event.label not in self._number:
                raise UsageError(f"{where}: {event.label!r} is no class of this run")

    def _note(self, event: Event, row: int) -> None:
        new = event.key not in self.keys
        self.keys[event.key].append(row)
        self.how[event.key] = event.how
        if new:
            self._done[event.reviewer].append(event.key)
            self._redoable[event.reviewer].clear()
        if event.key in self._early:
            self._turn(self._early.pop(event.key))

    def _turn(self, event: Event) -> list[int]:
        """Undo or redo all decisions of a key, now or when it comes; nothing is undone twice."""
        key, undo = event.of, event.decision == "undo"
        if key not in self.keys:
            if undo:
                self._early[key] = event
            else:
                self._early.pop(key, None)
            return []
        if (key in self._undone) == undo:
            return []
        done, redoable = self._done[event.reviewer], self._redoable[event.reviewer]
        source, target = (done, redoable) if undo else (redoable, done)
        if key not in source:
            return []
        source.remove(key)
        target.append(key)
        (self._undone.add if undo else self._undone.discard)(key)
        return self.keys[key]

    def can_undo(self, reviewer: str) -> str | None:
        """Return the key that an undo of this reviewer would undo."""
        done = self._done.get(reviewer)
        return done[-1] if done else None

    def can_redo(self, reviewer: str) -> str | None:
        """Return the key that a redo of this reviewer would bring back."""
        redoable = self._redoable.get(reviewer)
        return redoable[-1] if redoable else None

    def live(self, row: int) -> list[Event]:
        """Return the decisions about a sample that were not undone, in order."""
        return [event for _, event in self._live(row)]

    def _live(self, row: int) -> list[tuple[int, Event]]:
        return [(n, e) for n, e in self._events.get(row, ()) if e.key not in self._undone]

    def opinions(self, row: int) -> list[Opinion]:
        """Return the last opinion of each reviewer, and of each second look.

        Who settles a dispute overrules all that was said before.
        """
        voices: dict[tuple[str, bool], Opinion] = {}
        times: dict[tuple[str, bool], str] = {}
        for event in self.live(row):
            if event.how == "settle":
                voices.clear()
            again = event.how == "repeat"
            voice = event.reviewer, again
            if voice in voices and event.time < times[voice]:
                continue  # merged later, and said before
            voices[voice], times[voice] = self._opinion(event, row, again=again), event.time
        return list(voices.values())

    def _opinion(self, event: Event, row: int, *, again: bool = False) -> Opinion:
        label = self._number[event.label] if event.decision == "relabel" and event.label else -1
        state = STATES.index(event.decision)
        if label == self.given[row]:
            state, label = KEEP, -1
        return Opinion(state, label, event.reviewer, again)

    def _settle(self, row: int) -> None:
        """Bring the state of a sample up to date."""
        opinions = self.opinions(row)
        sure = {each.said for each in opinions if each.state != UNSURE}
        said = sure or {each.said for each in opinions} or {(OPEN, -1)}
        self.state[row], self.label[row] = said.pop() if len(said) == 1 else (DISPUTED, -1)
        live = self._live(row)
        self.last[row] = live[-1][0] if live else -1
        self.looked[row] = any(event.how != "bulk" for _, event in live)
        for how, rows in (("recheck", self.rechecked), ("repeat", self.repeated)):
            (rows.add if any(event.how == how for _, event in live) else rows.discard)(row)

    def said_wrong(self) -> tuple[Rows, NDArray[np.bool_]]:
        """Return rows that somebody looked at and was sure of, in order of time, and if wrong.

        A removed sample does not count: it may be blurred, or there twice.
        """
        sure = np.isin(self.state, (KEEP, RELABEL, NONE)) & self.looked
        rows = np.flatnonzero(sure)
        rows = rows[np.argsort(self.last[rows], kind="stable")]
        return rows, self.state[rows] != KEEP

    def repeats(self) -> tuple[int, int]:
        """Return how many second looks differ from the first, and how many there are."""
        differing = count = 0
        for row in self.repeated:
            first: dict[str, Opinion] = {}
            second: dict[str, tuple[Opinion, Opinion]] = {}
            for event in self.live(row):
                opinion = self._opinion(event, row)
                if event.how != "repeat":
                    first[event.reviewer] = opinion
                elif event.reviewer in first:
                    second[event.reviewer] = first[event.reviewer], opinion
            sure = [
                pair for pair in second.values() if UNSURE not in (pair[0].state, pair[1].state)
            ]
            count += len(sure)
            differing += sum(before.said != after.said for before, after in sure)
        return differing, count

    def rechecks(self) -> tuple[int, int]:
        """Return how many re-checked, unsuspected labels were wrong, and how many were judged."""
        rows = np.array(sorted(self.rechecked), dtype=np.int64)
        judged = rows[np.isin(self.state[rows], (KEEP, RELABEL, NONE))]
        return int((self.state[judged] != KEEP).sum()), len(judged)

    def count(self, *states: int) -> int:
        """Return how many samples are in one of some states."""
        return int(np.isin(self.state, states).sum())

    def reviewers(self, row: int) -> list[str]:
        """Return who decided about a sample."""
        return list(dict.fromkeys(opinion.reviewer for opinion in self.opinions(row)))
