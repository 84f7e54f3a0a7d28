from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.errors import UsageError
from unswayed.review.journal import Event
from unswayed.review.verdicts import STATES, Verdicts, plain

IDS, CLASSES, GIVEN = ["a", "b", "c"], ["cat", "dog", "owl"], np.array([0, 1, 2])


def event(number, sample="a", choice="keep", reviewer="me", **more):
    return Event(
        key=more.pop("key", f"key {number}"),
        time="t",
        reviewer=reviewer,
        id=sample,
        decision=choice,
        **more,
    )


def after(*events):
    verdicts = Verdicts(IDS, CLASSES, GIVEN)
    verdicts.apply(events)
    return verdicts


def state(verdicts, row=0):
    return STATES[verdicts.state[row]]


@pytest.mark.parametrize("choice", ["keep", "none", "unsure", "remove"])
def test_a_decision_is_the_state(choice):
    verdicts = after(event(1, choice=choice))
    assert state(verdicts) == choice
    assert state(verdicts, 1) == "open"


def test_a_new_label_is_kept_and_the_old_one_is_no_change():
    assert after(event(1, choice="relabel", label="owl")).label[0] == 2
    assert state(after(event(1, choice="relabel", label="cat"))) == "keep"


def test_the_last_decision_of_a_reviewer_counts():
    verdicts = after(event(1), event(2, choice="none"))
    assert state(verdicts) == "none"
    assert len(verdicts.opinions(0)) == 1


def test_undo_brings_back_what_was_decided_before():
    undo = event(3, "", "undo", of="key 2")
    verdicts = after(event(1), event(2, choice="none"), undo)
    assert state(verdicts) == "keep"
    assert (verdicts.can_undo("me"), verdicts.can_redo("me")) == ("key 1", "key 2")
    verdicts.apply([event(4, "", "redo", of="key 2")])
    assert state(verdicts) == "none"
    verdicts.apply([event(5, "", "undo", of="key 2"), event(6, "b")])
    assert verdicts.can_redo("me") is None


def test_one_undo_takes_back_a_bulk_decision():
    bulk = [event(1, name, "none", key="bulk", how="bulk") for name in IDS]
    verdicts = after(*bulk, event(2, "", "undo", of="bulk"))
    assert [state(verdicts, row) for row in range(3)] == ["open"] * 3
    assert not verdicts.looked.any()


def test_an_undo_that_is_merged_first_counts_when_its_decision_comes():
    verdicts = after(event(2, "", "undo", of="key 1"), event(3, choice="none"))
    verdicts.apply([event(1)])
    assert state(verdicts) == "none"
    verdicts = after(event(2, "", "undo", of="key 1"), event(1))
    assert state(verdicts) == "open"


def test_an_older_decision_that_is_merged_later_does_not_count():
    new = event(1, choice="none").model_copy(update={"time": "2026-02"})
    old = event(2).model_copy(update={"time": "2026-01"})
    assert state(after(new, old)) == "none"


def test_nobody_undoes_what_somebody_else_decided():
    assert state(after(event(1), event(2, "", "undo", "you", of="key 1"))) == "keep"


def test_two_reviewers_who_differ_are_shown_until_it_is_settled():
    verdicts = after(event(1), event(2, choice="none", reviewer="you"))
    assert state(verdicts) == "disputed"
    assert verdicts.reviewers(0) == ["me", "you"]
    verdicts.apply([event(3, choice="none", reviewer="third", how="settle")])
    assert state(verdicts) == "none"
    verdicts.apply([event(4, "", "undo", "third", of="key 3")])
    assert state(verdicts) == "disputed"


def test_two_different_new_labels_are_a_dispute_too():
    verdicts = after(
        event(1, choice="relabel", label="owl"),
        event(2, choice="relabel", label="dog", reviewer="you"),
    )
    assert state(verdicts) == "disputed"


def test_who_is_unsure_gives_way():
    assert state(after(event(1, choice="unsure"), event(2, reviewer="you"))) == "keep"


def test_a_second_look_that_differs_is_a_mistake_and_a_dispute():
    verdicts = after(event(1), event(2, choice="none", how="repeat"), event(3, "b"))
    assert state(verdicts) == "disputed"
    assert verdicts.repeats() == (1, 1)
    verdicts.apply([event(4, "b", how="repeat")])
    assert (state(verdicts, 1), verdicts.repeats()) == ("keep", (1, 2))
    verdicts.apply([event(5, "", "undo", of="key 2")])
    assert verdicts.repeats() == (0, 1)
    verdicts.apply([event(6, "b", "none", how="repeat"), event(7, "b", how="repeat")])
    assert verdicts.repeats() == (0, 1)  # of one look, the last word counts


def test_rechecks_count_what_the_audit_missed():
    verdicts = after(
        event(1, how="recheck"),
        event(2, "b", "none", how="recheck"),
        event(3, "c", "unsure", how="recheck"),
    )
    assert verdicts.rechecks() == (1, 2)


def test_only_sure_decisions_by_eye_teach():
    verdicts = after(
        event(1, "c", "none"), event(2, "b", "relabel", label="cat", how="bulk"), event(3, "a")
    )
    rows, wrong = verdicts.said_wrong()
    assert rows.tolist() == [2, 0]
    assert wrong.tolist() == [True, False]
    verdicts.apply([event(4, "c", "remove")])
    assert verdicts.said_wrong()[0].tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (event(1, "z"), "no sample of this run"),
        (event(1, given="dog"), "judged another label"),
        (event(1, choice="relabel", label="fox"), "is no class"),
    ],
)
def test_events_of_other_data_are_refused_or_passed_over(wrong, words):
    verdicts = after(wrong)
    assert verdicts.strangers == 1
    assert state(verdicts) == "open"
    with pytest.raises(UsageError, match=words):
        verdicts.check([wrong], "other.jsonl")


def test_broken_unicode_becomes_text():
    assert plain("a\udcff") == "a\\udcff"
    assert Verdicts(["\udcff"], CLASSES, GIVEN[:1]).rows == {"\\udcff": 0}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["me", "you"]),
        st.sampled_from(["keep", "none", "unsure", "remove", "dog", "owl", "undo", "redo"]),
        st.sampled_from(IDS),
    ),
    max_size=25,
)


@given(STEPS)
def test_any_sequence_means_what_a_literal_replay_says(steps):
    verdicts = Verdicts(IDS, CLASSES, GIVEN)
    done = {"me": [], "you": []}  # literal stacks of (key, id, said)
    redo = {"me": [], "you": []}
    live = []
    for number, (who, word, sample) in enumerate(steps):
        if word in ("undo", "redo"):
            of = verdicts.can_undo(who) if word == "undo" else verdicts.can_redo(who)
            source, target = (done, redo) if word == "undo" else (redo, done)
            assert (of is not None) == bool(source[who])
            if not source[who]:
                continue
            entry = source[who].pop()
            target[who].append(entry)
            assert of == entry[0]
            live = [e for e in live if e != entry] if word == "undo" else [*live, entry]
            live.sort(key=lambda e: int(e[0][4:]))
            verdicts.apply([event(number, "", word, who, of=of)])
            continue
        new = word in CLASSES
        verdicts.apply(
            [event(number, sample, "relabel" if new else word, who, label=word if new else None)]
        )
        entry = (f"key {number}", sample, word, who)
        done[who].append(entry)
        redo[who].clear()
        live.append(entry)
    for row, sample in enumerate(IDS):
        last = {who: word for _, name, word, who in live if name == sample}
        said = {"keep" if word == CLASSES[row] else word for word in last.values()}
        said = (said - {"unsure"}) or said
        expected = "open" if not said else "disputed" if len(said) > 1 else said.pop()
        found = state(verdicts, row)
        if found == "relabel":
            found = CLASSES[verdicts.label[row]]
        assert found == expected
