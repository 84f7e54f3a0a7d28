"""A reviewer who errs now and then, and the orders in which labels are shown, where truth is known.

The reviewer answers by the true labels. What they say of a sample is drawn once for a seed, so all
orders meet the same mistakes. Only the real queue asks twice; a second look errs independently.
"""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from audit_measures import Labels, Vector
from audit_rivals import scores
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

import unswayed.review
from unswayed import Audit, Run, audit
from unswayed.audits.result import STOP
from unswayed.audits.storage import FILE as AUDIT
from unswayed.audits.storage import read_audit, write_audit
from unswayed.files import atomic
from unswayed.review import Filter, Review
from unswayed.review.recalibration import Expected
from unswayed.review.review import STEP
from unswayed.review.verdicts import OPEN

ERROR = 0.02
"""Of the reviewer's answers."""

EVERY = 500
"""Decisions between two looks at what the review promises."""

NAME = "simulated"
Note = dict[str, Any]


class Reviewer:
    """Knows the true labels, and errs."""

    def __init__(self, true: Labels, classes: int, seed: int, error: float = ERROR) -> None:
        rng = np.random.default_rng([seed, 90])  # not the stream of anything else with this seed
        self.first = _answers(true, classes, rng, error)
        self.second = _answers(true, classes, rng, error)


def _answers(true: Labels, classes: int, rng: np.random.Generator, error: float) -> Labels:
    """Return the truth with some errors; an error is any other class."""
    errs = rng.random(len(true)) < error
    other = (true + rng.integers(1, classes, len(true))) % classes
    return np.where(errs, other, true)


# Orders that do not change ---------------------------------------------------------------------


def random_order(count: int, seed: int) -> Labels:
    """Return all rows in any order."""
    return np.random.default_rng([seed, 91]).permutation(count)


class Ranked(NamedTuple):
    """An order by one of cleanlab's scores."""

    order: Labels
    score: str
    precision: dict[str, float]  # average precision of every score


def cleanlab_order(p: NDArray[np.float32], given: Labels, true: Labels) -> Ranked:
    """Return cleanlab's order, by the score with the best average precision.

    Only the truth can tell which one that is; it is chosen in cleanlab's favour.
    """
    found = scores(p / p.sum(axis=1, keepdims=True), given)
    wrong = given != true
    precision = {name: float(average_precision_score(wrong, s)) for name, s in found.items()}
    best = max(precision, key=precision.__getitem__)
    return Ranked(np.argsort(-found[best], kind="stable"), best, precision)


def even_order(order: Labels, given: Labels) -> Labels:
    """Return an order in which given classes take turns, the first of each class first."""
    turn = np.empty(len(order), dtype=np.int64)
    for label in np.unique(given):
        mine = given[order] == label
        turn[mine] = np.arange(mine.sum())
    return order[np.argsort(turn, kind="stable")]


def corrected(given: Labels, order: Labels, reviewer: Reviewer, decisions: int) -> Labels:
    """Return the labels after the first so many samples of an order were looked at once."""
    labels = given.copy()
    rows = order[:decisions]
    labels[rows] = reviewer.first[rows]
    return labels


def bookkeeping(labels: Labels, given: Labels, true: Labels) -> Note:
    """Return what decisions have made of the labels."""
    return {
        "noise": float((labels != true).mean()),
        "corrected": int(((given != true) & (labels == true)).sum()),
        "spoilt": int(((given == true) & (labels != true)).sum()),
    }


# The real queue --------------------------------------------------------------------------------


class Walk(NamedTuple):
    """What happened in a review."""

    labels: dict[int, Labels]  # decisions -> labels
    promises: list[Note]
    stop: Note  # the promise when nothing was left above the stop line


def audited(run: Run) -> Audit:
    """Return the audit of a run; it is made once."""
    if not (run.path / AUDIT).is_file():
        write_audit(audit(run), run)
    return read_audit(run)


def new_review(run: Run, journal: Path) -> Review:
    """Return a review of a run with a journal of its own."""
    facts = run.provenance
    secret = f"{facts.data.fingerprint} {facts.started}"
    return Review(audited(run), journal, holdout=run.samples().holdout, secret=secret)


def walk(
    review: Review,
    reviewer: Reviewer,
    true: Labels,
    marks: Sequence[int],
    say: Callable[[str], None] = lambda _: None,
) -> Walk:
    """Review until nothing is left above the stop line, and at least to the last mark.

    Args:
        review: nothing is decided yet.
        reviewer: who decides.
        true: (N,)
        marks: decisions after which the labels are kept.
        say: is told of progress.
    """
    labels, done = review.found.given.copy(), 0
    kept, promises, stop = {0: labels.copy()}, [promise(review, true, 0, labels)], {}
    while slots := review.slots(Filter(), 0, STEP, NAME):
        version = review.version
        for slot in slots:
            again = slot.how == "repeat"
            answer = int((reviewer.second if again else reviewer.first)[slot.row])
            _decide(review, slot, answer)
            done += 1
            if not again:  # a second look measures the reviewer, and changes no label
                labels[slot.row] = answer
            if done in marks:
                kept[done] = labels.copy()
            if done in marks or done % EVERY == 0:
                promises.append(promise(review, true, done, labels))
                say(f"{done:,} decisions")
            if not stop and not len(review.rows(Filter(low=STOP))):
                stop = promise(review, true, done, labels)
            if stop and done >= max(marks):
                return Walk(kept, promises, stop)
            if review.version != version:  # the queue has been sorted anew
                break
    return Walk(kept, promises, stop or promise(review, true, done, labels))


def _decide(review: Review, slot: Any, answer: int) -> None:
    if answer == review.found.given[slot.row]:
        review.decide(slot, "keep", NAME)
    else:
        review.decide(slot, "relabel", NAME, label=answer)


def promise(review: Review, true: Labels, done: int, labels: Labels) -> Note:
    """Return what a review says of itself, beside the truth."""
    said, given = review.progress(), review.found.given
    wrong = given != true
    waiting = review.verdicts.state == OPEN
    first = review.rows(Filter())[:50]
    above = review.found.p_wrong >= STOP
    return {
        "decisions": done,
        "to_stop": said.to_stop,
        "hidden": _beside(said.hidden, float((wrong & waiting).sum())),
        "next_fifty": {
            "value": said.next_fifty,
            "real": float(wrong[first].mean()) if len(first) else None,
        },
        "recall": _beside(said.recall, float(wrong[above].sum() / max(wrong.sum(), 1))),
        "rechecked": said.rechecked,
        "mistakes": _beside(said.mistakes, ERROR),
        "repeated": said.repeated,
        **bookkeeping(labels, given, true),
    }


def _beside(said: Expected | None, real: float) -> Note | None:
    if said is None:
        return None
    return {**said._asdict(), "real": real, "holds": bool(said.low <= real <= said.high)}


def kept_walk(
    run: Run,
    reviewer: Reviewer,
    marks: Sequence[int],
    folder: Path,
    say: Callable[[str], None],
) -> Walk:
    """Return the review of a run; it is simulated once for the code and the audit as they are."""
    file, key = folder / "walk.npz", _key(run, reviewer, marks)
    if file.is_file():
        with np.load(file, allow_pickle=False) as arrays:
            if str(arrays["key"]) == key:
                notes = json.loads(str(arrays["notes"]))
                kept = {int(n): arrays[n] for n in arrays.files if n.isdigit()}
                return Walk(kept, notes["promises"], notes["stop"])
    true = run.samples().true
    assert true is not None
    with tempfile.TemporaryDirectory() as place:  # the journal of the run itself is left alone
        found = walk(new_review(run, Path(place) / "review.jsonl"), reviewer, true, marks, say)
    folder.mkdir(parents=True, exist_ok=True)
    notes = json.dumps({"promises": found.promises, "stop": found.stop})
    with atomic(file) as temporary, temporary.open("wb") as stream:
        arrays = {str(n): labels for n, labels in found.labels.items()}
        np.savez(stream, allow_pickle=False, key=key, notes=notes, **arrays)
    return found


def _key(run: Run, reviewer: Reviewer, marks: Iterable[int]) -> str:
    """Return a name of all that a simulated review depends on."""
    found = sha256()
    for name in ("recalibration", "rechecks", "review", "verdicts"):
        file = Path(unswayed.review.__file__).with_name(f"{name}.py")
        found.update(_statements(file.read_text(encoding="utf-8")).encode())
    p_wrong: Vector = audited(run).p_wrong
    for array in (p_wrong, reviewer.first, reviewer.second):
        found.update(np.ascontiguousarray(array).tobytes())
    found.update(repr(sorted(marks)).encode())
    return found.hexdigest()


def _statements(source: str) -> str:
    """Return code without comments and docstrings, which change nothing."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
