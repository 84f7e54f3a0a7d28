from __future__ import annotations

import pytest

from exports.examples import decide, trained
from unswayed import UsageError
from unswayed.exports import correct
from unswayed.review import Slot, open_review


@pytest.fixture
def run(tmp_path):
    return trained(tmp_path / "run", "data.size=8", "data.test_fraction=0.97")


def test_every_state_has_its_meaning(run):
    given = [run.provenance.data.classes[k] for k in run.samples().given]
    new = next(name for name in "0123456789" if name != given[0])
    decide(run, 0, "relabel", new)
    decide(run, 1, "keep")
    decide(run, 2, "none")
    decide(run, 3, "unsure")
    decide(run, 4, "remove", reviewer="bob")
    review = open_review(run)
    for who, choice in (("ann", "keep"), ("bob", "none")):  # two people who differ
        event = review._event(5, choice, who, None, "single", f"key-{who}")
        review._append([event])
    found = correct(run)
    ids = found.ids
    assert [(c.id, c.new_label, c.decided_by, c.what) for c in found.changes] == [
        (ids[0], new, "ann", "relabel"),
        (ids[2], None, "ann", "none"),
        (ids[4], None, "bob", "remove"),
    ]
    assert found.labels[ids[2]] is None
    assert found.labels[ids[1]] == given[1]
    assert found.labels[ids[5]] == given[5]
    assert found.disputed == 1
    words = str(found)
    assert f"1 of {len(ids)} labels change: 1 by ann" in words
    assert "2 samples are left out" in words
    assert "1 disputed labels stay as they were; settle them with: unswayed review" in words
    assert "without review" not in words


def test_suggestions_are_accepted_only_where_nobody_decided(run):
    decide(run, 1, "keep")
    decide(run, 2, "unsure")
    found = correct(run, 0.6)  # rows 0 to 3 have 0.97, 0.87, 0.77 and 0.68
    given = run.samples().given
    assert [change.id for change in found.changes] == [found.ids[0], found.ids[3]]
    first = found.changes[0]
    assert first.new_label == run.provenance.data.classes[(given[0] + 1) % 10]
    assert (first.decided_by, first.what) == ("audit (P >= 0.6)", "accept")
    assert found.mistakes == pytest.approx((1 - 0.99 * 0.98) + (1 - 0.69 * 0.98))
    assert "2 labels change without review; 0.4 of those changes" in str(found)
    assert correct(run).changes == ()


def test_an_audit_that_is_not_that_sure_says_how_sure_it_is(run):
    found = correct(run, 0.999)
    assert not found.changes
    assert (
        "no suggestion is right with at least 0.999; the surest of those nobody decided: 0.9"
        in (str(found))
    )
    assert "the surest" not in str(correct(run))


def test_two_people_who_agree_are_both_named(run):
    decide(run, 0, "none")
    decide(run, 0, "none", reviewer="bob")
    assert correct(run).changes[0].decided_by == "ann, bob"


@pytest.mark.parametrize("accept", [0.4, 1.0, -1, 95])
def test_a_share_that_is_none_is_refused(run, accept):
    with pytest.raises(UsageError, match=r"--accept is a probability from 0\.5"):
        correct(run, accept)


def test_a_run_without_an_audit_says_how_to_make_one(run):
    (run.path / "audit.safetensors").unlink()
    with pytest.raises(UsageError, match="unswayed audit"):
        correct(run)


def test_a_decision_about_something_else_is_told(run):
    review = open_review(run)
    review.decide(Slot(0), "none", "ann")
    journal = run.path / "review.jsonl"
    journal.write_text(journal.read_text().replace(correct(run).ids[0], "stranger"))
    found = correct(run)
    assert found.changes == ()
    assert "1 decisions are about other samples" in str(found)
