from __future__ import annotations

import json

import numpy as np
import pytest
from example_audits import made
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.audits.result import STOP
from unswayed.errors import UsageError
from unswayed.review import Filter, Review, Slot
from unswayed.review.journal import Event, read_events
from unswayed.review.review import FORGOTTEN, STEP
from unswayed.review.verdicts import KEEP, OPEN, RELABEL


@pytest.fixture
def review(tmp_path):
    return Review(made(600), tmp_path / "review.jsonl", holdout=[0, 5, 7])


def decide_next(review, count, wrong=lambda slot: True, who="me"):
    """Decide about the first samples of the queue, one after the other."""
    seen = []
    for _ in range(count):
        (slot,) = review.slots(Filter(), 0, 1, who)
        suggested = int(review.found.suggested[slot.row])
        said = ("relabel", suggested) if wrong(slot) else ("keep", None)
        review.decide(slot, said[0], who, label=said[1])
        seen.append(slot)
    return seen


def test_the_queue_begins_with_the_worst_and_leaves_decided_ones_out(review):
    plain = Filter(low=0.0001)  # no re-checks in a filtered queue
    rows = [slot.row for slot in review.slots(plain, 0, 50, "me")]
    assert rows == review.found.order[:50].tolist()
    review.decide(Slot(rows[0]), "keep", "me")
    assert review.slots(plain, 0, 1, "me")[0].row == rows[1]
    assert review.rows(Filter(decided="yes")).tolist() == [rows[0]]


FILTERS = st.builds(
    Filter,
    tab=st.sampled_from(["queue", "ambiguous", "outlier", "conflict"]),
    given=st.none() | st.integers(0, 3),
    suggested=st.none() | st.integers(0, 3),
    low=st.floats(0, 0.6),
    high=st.floats(0.4, 1),
    split=st.sampled_from(["any", "trained", "held out"]),
    decided=st.sampled_from(["no", "yes", "any"]),
    text=st.sampled_from(["", "1", "PHOTOS/2", "nothing"]),
)


@pytest.fixture(scope="module")
def half_done(tmp_path_factory):
    review = Review(made(300), tmp_path_factory.mktemp("half") / "review.jsonl", holdout=[0, 5, 7])
    decide_next(review, 30)
    return review


@settings(max_examples=60)
@given(FILTERS)
def test_a_filter_lets_through_what_a_literal_loop_does(half_done, chosen):
    found, wanted = half_done.found, []
    for row in range(len(found)):
        keep = chosen.low <= half_done.p_wrong[row] <= chosen.high
        keep &= chosen.given in (None, found.given[row])
        keep &= chosen.suggested in (None, found.suggested[row])
        keep &= chosen.split == "any" or (row in (0, 5, 7)) == (chosen.split == "held out")
        keep &= chosen.text.lower() in found.ids[row].lower()
        keep &= chosen.tab == "queue" or chosen.tab in found.flags.get(row, "").split()
        decided = half_done.verdicts.state[row] != OPEN
        keep &= chosen.decided == "any" or decided == (chosen.decided == "yes")
        wanted += [row] if keep else []
    rows = half_done.rows(chosen).tolist()
    assert sorted(rows) == wanted
    if chosen.tab != "conflict":
        assert all(np.diff(half_done.p_wrong[rows]) <= 0)


def test_duplicates_stand_beside_their_twins(review):
    rows = review.rows(Filter(tab="conflict", decided="any")).tolist()
    assert rows == [2]
    assert review.twins(2) == [row for row in review.found.groups[1] if row != 2]


def test_one_in_twenty_is_a_blind_check_of_something_unsuspected(review):
    seen = decide_next(review, 200, wrong=lambda slot: slot.how != "recheck")
    checks = [slot for slot in seen if slot.how in ("recheck", "repeat")]
    assert 8 <= len(checks) <= 11
    assert all(slot.blind for slot in checks)
    unsuspected = [slot.row for slot in checks if slot.how == "recheck"]
    assert all(review.found.p_wrong[unsuspected] < STOP)
    assert review.progress().rechecked == len(unsuspected)
    assert any(slot.blind for slot in seen if slot.how == "single")  # so "blind" tells nothing


def test_second_looks_are_at_old_decisions_of_the_same_reviewer(review):
    seen = decide_next(review, 250)
    places = {slot.row: n for n, slot in enumerate(seen) if slot.how == "single"}
    repeats = [(n, slot.row) for n, slot in enumerate(seen) if slot.how == "repeat"]
    assert repeats
    for n, row in repeats:
        assert n - places.get(row, n - FORGOTTEN) >= FORGOTTEN - 1
    assert review.progress().repeated == len(repeats)
    assert review.progress().mistakes.value == 0
    assert not [s for s in review.slots(Filter(), 0, 200, "you") if s.how == "repeat"]


def test_without_a_share_there_are_no_checks(tmp_path):
    review = Review(made(300), tmp_path / "j", recheck=0)
    assert not any(slot.blind for slot in review.slots(Filter(), 0, 300, "me"))
    with pytest.raises(UsageError, match="--recheck"):
        Review(made(300), tmp_path / "j", recheck=0.9)


def test_names_of_places_are_found_again_and_tell_nothing(review):
    kinds = [Slot(3), Slot(3, "recheck", True), Slot(3, "repeat", True), Slot(3, blind=True)]
    names = [review.name_of(slot) for slot in kinds]
    assert len({*names}) == 4
    assert [review.slot_of(3, name) for name in names] == kinds
    with pytest.raises(UsageError, match="reload"):
        review.slot_of(3, "of another run")


def test_decisions_move_the_stop_line_and_p_wrong(review):
    before = review.progress()
    decide_next(review, STEP + 3, wrong=lambda slot: False)
    after = review.progress()
    assert (before.fitted, after.fitted) == (0, STEP)
    assert after.to_stop != before.to_stop  # the audit was too suspicious
    assert after.hidden.value < before.hidden.value - 5
    assert after.first_stop == before.first_stop
    sure = review.found.p_wrong > 0.9
    assert (review.p_wrong[sure] < 0.5).all()
    assert np.allclose(review.p_suggested / review.p_wrong, 0.9)


def test_a_review_that_is_opened_again_is_the_same(review, tmp_path):
    decide_next(review, 70, wrong=lambda slot: slot.row % 3 > 0)
    review.undo("me")
    again = Review(review.found, tmp_path / "review.jsonl", holdout=[0, 5, 7])
    assert again.progress() == review.progress()
    assert (again.p_wrong == review.p_wrong).all()
    assert again.slots(Filter(), 0, 40, "me") == review.slots(Filter(), 0, 40, "me")
    assert again.verdicts.can_redo("me") == review.verdicts.can_redo("me")


def test_the_same_key_counts_once(review):
    for _ in range(2):
        review.decide(Slot(1), "keep", "me", key="0123456789abcdef")
    assert len(review.journal.events) == 1


def test_accepting_all_is_one_decision(review):
    chosen = Filter(given=1, low=0.8)
    told = review.preview(chosen)
    rows = review.rows(chosen)
    assert told.samples == len(rows) > 3
    assert told.expected_right == pytest.approx(review.found.p_suggested[rows].sum())
    assert review.accept_all(chosen, "me", told.samples) == len(rows)
    assert (review.verdicts.state[rows] == RELABEL).all()
    assert (review.verdicts.label[rows] == review.found.suggested[rows]).all()
    assert review.progress().looked == 0  # nobody has looked
    assert sorted(slot.row for slot in review.undo("me")) == sorted(rows.tolist())
    assert review.progress().unseen == 0
    review.undo("me", redo=True)
    assert (review.progress().unseen, review.progress().reviewed) == (len(rows), 0)
    with pytest.raises(UsageError, match="0 samples match now"):
        review.accept_all(chosen, "me", told.samples)


def test_nothing_is_undone_twice(review):
    review.decide(Slot(4), "none", "me")
    assert review.undo("me") == [Slot(4)]
    assert review.undo("me") == []
    assert review.undo("you") == []


def test_a_decision_about_a_dispute_settles_it(review):
    review.decide(Slot(1), "keep", "me")
    review.decide(Slot(1), "none", "you")
    assert review.rows(Filter(tab="disputed")).tolist() == [1]
    assert review.tabs()["disputed"] == 1
    review.decide(Slot(1), "keep", "third")  # a page that did not show the dispute
    assert review.progress().disputed == 1
    assert review.preview(Filter(tab="disputed")).samples == 0  # it is decided, if not settled
    review.decide(Slot(1), "keep", "you", settles=True)
    assert review.verdicts.state[1] == KEEP
    assert review.progress().disputed == 0


def test_an_undo_takes_back_what_the_page_means_or_nothing(review):
    review.decide(Slot(1), "keep", "me", key="1" * 16)
    review.decide(Slot(2), "keep", "me", key="2" * 16)
    with pytest.raises(UsageError, match="something else was decided"):
        review.undo("me", of="1" * 16)
    assert review.undo("me", of="2" * 16) == [Slot(2)]


def test_a_check_that_is_undone_is_a_check_again_and_does_not_count(review):
    decide_next(review, 200)
    slot = next(s for s in review.slots(Filter(), 0, 200, "me") if s.how == "recheck")
    before = review.progress().rechecked
    review.decide(slot, "none", "me")
    assert review.progress().rechecked == before + 1
    assert review.undo("me") == [slot]
    assert review.progress().rechecked == before
    review.decide(Slot(slot.row), "none", "me")  # found in another way
    assert review.progress().rechecked == before


def test_a_bulk_decision_that_a_crash_cut_short_is_completed(review, tmp_path):
    chosen = Filter(given=1, low=0.8)
    count = review.preview(chosen).samples
    review.accept_all(chosen, "me", count, key="abcdabcdabcdabcd")
    lines = (tmp_path / "review.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:2]))
    again = Review(review.found, tmp_path / "cut.jsonl")
    assert again.accept_all(chosen, "me", count, key="abcdabcdabcdabcd") == count
    assert (again.verdicts.state == review.verdicts.state).all()


def test_recall_is_not_praised_because_people_found_what_was_missed(tmp_path):
    found = made(3000, wrong=0.2)
    rng = np.random.default_rng(0)
    wrong = rng.random(3000) < found.p_wrong
    wrong |= (found.p_wrong < STOP) & (rng.random(3000) < 0.05)  # the audit overlooks some
    real = (wrong & (found.p_wrong >= STOP)).sum() / wrong.sum()
    review = Review(found, tmp_path / "j", recheck=0.2)
    review.journal.append = in_memory(review.journal)
    for _ in range(130):
        for slot in review.slots(Filter(), 0, 20, "me"):
            said = "none" if wrong[slot.row] else "keep"
            review.decide(slot, said, "me")
    assert review.progress().reviewed > 2200
    told = review.progress().recall
    assert told.low <= real <= told.high


def in_memory(journal):
    """Return a way to append that does not sync thousands of lines."""

    def append(events):
        journal.events += events
        return list(events)

    return append


def test_merging_adds_what_is_new_and_shows_what_differs(review, tmp_path):
    other = Review(review.found, tmp_path / "other.jsonl")
    other.decide(Slot(1), "none", "you")
    other.decide(Slot(2), "keep", "you")
    review.decide(Slot(1), "keep", "me")
    events = read_events(tmp_path / "other.jsonl")
    assert review.merge(events, "other") == 2
    assert review.merge(events, "other") == 0
    assert review.progress().disputed == 1
    stranger = [Event(key="abcd", time="t", reviewer="r", id="nobody", decision="keep")]
    before = (tmp_path / "review.jsonl").read_bytes()
    with pytest.raises(UsageError, match="nobody"):
        review.merge(stranger, "other")
    assert (tmp_path / "review.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("row", "choice", "label"), [(-1, "keep", None), (9999, "keep", None), (1, "relabel", None),
                                 (1, "relabel", 99), (1, "keep", 2)]
)  # fmt: skip
def test_what_makes_no_sense_is_not_written(review, row, choice, label, tmp_path):
    with pytest.raises((UsageError, IndexError)):
        review.decide(Slot(row), choice, "me", label=label)
    assert not (tmp_path / "review.jsonl").exists() or not review.journal.events


def test_the_journal_says_who_when_and_what(review, tmp_path):
    review.decide(Slot(1), "relabel", "me", label=3)
    (line,) = (tmp_path / "review.jsonl").read_text(encoding="utf-8").splitlines()
    said = json.loads(line)
    assert said["reviewer"] == "me"
    assert said["id"] == "photos/1.jpg"
    assert said["label"] == "class 3"
    assert said["given"] == f"class {review.found.given[1]}"
    assert said["time"].startswith("20")
