from __future__ import annotations

import json
import re

import pytest
from example_audits import HOSTILE, made, noise_image

from browsing import visit
from unswayed import write_report
from unswayed.report.audit_page import LIMIT, page
from unswayed.report.decisions import ID_ROOM, LONGEST, decision_data, digest, script_json
from unswayed.report.text import shortened
from unswayed.review import Review
from unswayed.review.journal import LONGEST_LINE, Event, read_events
from unswayed.review.verdicts import plain


def drawn(found, image=None):
    return page(found, title="t", image=image, facts={}, commands=())


@pytest.fixture
def opened(tmp_path, browser_or_skip):
    """Return a function that opens reports in tabs of one browser profile."""
    with visit(browser_or_skip) as first:
        first.set_viewport_size({"width": 1280, "height": 900})

        def open_(found, name="r.html", tab=first, title="My photos: 1"):
            write_report(found, tmp_path / name, title=title)
            tab.goto((tmp_path / name).as_uri())
            return tab

        yield open_


def decided(tab):
    return tab.locator("#decided").text_content()


def said(tab, number):
    """Return what a card says of its decision; nothing if it is open."""
    return tab.locator(".card").nth(number).locator(".deciding > span").all_text_contents()


def current(tab):
    return tab.evaluate("[...document.querySelectorAll('.card')].indexOf(document.activeElement)")


def press(tab, *keys):
    for key in keys:
        tab.keyboard.press(key)


def begin(tab, number=0):
    tab.locator(".card").nth(number).focus()


def click(tab, number, what):
    tab.locator(".card").nth(number).locator(f"[data-what={what}]").click()


def download(tab, path, reviewer="Ann"):
    tab.locator("#reviewer").fill(reviewer)
    with tab.expect_download() as waiting:
        tab.locator("#download").click()
    waiting.value.save_as(path)
    return read_events(path)


def review(found, path):
    return Review(found, path / "review.jsonl")


# The data in the page ---------------------------------------------------------------------------


def test_ids_and_names_are_those_of_a_review():
    found = made(
        60, len(HOSTILE), classes=list(HOSTILE), ids=[f"{i}{HOSTILE[i % 8]}" for i in range(60)]
    )
    data = json.loads(script_json(decision_data(found, range(60))))
    long = [i for i in range(60) if i % 8 == 5]
    assert [row for row, name in data["samples"] if name is None] == long
    assert all(name in (None, plain(found.ids[row])) for row, name in data["samples"])
    expected = {str(k): plain(name) for k, name in enumerate(HOSTILE) if k != 5}
    assert data["classes"] == expected


def test_no_text_ends_the_data():
    names = ["</script>", "<!--", "<script>", "]]>", "\u2028"]
    text = script_json(names)
    assert json.loads(text) == names
    assert "<" not in text
    assert text.isascii()


@pytest.mark.parametrize("letter", ["a", "\x01", "é", "😀"])
def test_the_longest_line_can_be_read_by_a_review(letter):
    size = len(json.dumps(letter)) - 2
    fits, long = (letter * ((LONGEST - 2) // size + more) for more in (0, 1))
    data = decision_data(made(2, 2, ids=[fits, long], classes=[fits, "b"], full=False), [0, 1])
    assert data["samples"] == [[0, fits], [1, None]]
    assert data["classes"][0] == fits
    event = Event(
        key="0" * 16,
        time="2" * 30,
        reviewer="😀" * 80,
        id=fits,
        decision="relabel",
        label=fits,
        given=fits,
        how="report",
    )
    assert len(event.line()) < LONGEST_LINE


def test_ids_of_any_length_leave_the_page_small():
    found = made(1500, 3, ids=[f"{i}" + "<" * (900 + i % 200) for i in range(1500)], wrong=0.9)
    text = drawn(found)
    assert len(text.encode()) < LIMIT
    block = text.partition('id="decision-data">')[2].partition("</script>")[0]
    names = [name for _, name in json.loads(block)["samples"]]
    assert 0 < len(list(filter(None, names))) < len(names)
    assert len(block) < 1.1 * ID_ROOM


def test_names_that_are_long_as_html_cost_cards_and_not_the_limit():
    names = [f"{i}{chr(34) * 250}" for i in range(1000)]
    text = drawn(
        made(100_000, 1000, classes=names, ids=[f"{i}{chr(34) * 250}" for i in range(100_000)]),
        noise_image,
    )
    assert len(text.encode()) < LIMIT
    assert text.count("<article") > 48


def test_without_anything_to_decide_the_page_has_no_trace_of_it():
    text = drawn(made(5, 2, ids=[f"{'x' * 9000}{i}" for i in range(5)]))
    assert text.count("<script") == 1
    for name in ("bar", "keys", "undecided", "chooser", "decision-data"):
        assert f'id="{name}"' not in text


def test_the_digest_tells_audits_apart():
    assert digest(made()) == digest(made())
    assert (
        len({digest(made(seed=0)), digest(made(seed=1)), digest(made(ids=list("abc") * 100))}) == 3
    )


# In the browser ---------------------------------------------------------------------------------


def test_decisions_by_keyboard_go_on_to_the_next_card(opened):
    found = made()
    tab = opened(found)
    press(tab, "j")
    assert current(tab) == 0
    press(tab, "y", "n", "o", "u")
    worst = found.order
    assert said(tab, 0) == [f"✓ now {found.classes[found.suggested[worst[0]]]}"]
    assert said(tab, 1) == [f"= stays {found.classes[found.given[worst[1]]]}"]
    assert said(tab, 2) + said(tab, 3) == ["∅ none of these", "? unsure"]
    assert current(tab) == 4
    assert decided(tab) == f"4 of {found.to_review} decided, 2 of them wrong"
    press(tab, "k", "k")
    assert current(tab) == 2
    press(tab, "y")  # another decision, and on to the next that is open
    assert current(tab) == 4
    assert decided(tab) == f"4 of {found.to_review} decided, 2 of them wrong"
    columns = tab.evaluate("getComputedStyle(cards).gridTemplateColumns.split(' ').length")
    ways = {
        "Control+y": 0,
        "ArrowRight": 1,
        "ArrowDown": columns,
        "ArrowLeft": -1,
        "ArrowUp": -columns,
    }
    at = 4
    for key, by in ways.items():
        press(tab, key)
        at += by
        assert current(tab) == at


def test_decisions_by_mouse_and_undo(opened):
    tab = opened(made())
    click(tab, 3, "accept")
    click(tab, 4, "keep")
    click(tab, 5, "unsure")
    assert [len(said(tab, number)) for number in (2, 3, 4, 5, 6)] == [0, 1, 1, 1, 0]
    assert current(tab) == 6
    click(tab, 4, "undo")
    assert (said(tab, 4), current(tab)) == ([], 4)
    press(tab, "z")  # this card is open, so the last decision is taken back
    assert (said(tab, 5), current(tab)) == ([], 5)
    begin(tab, 3)
    press(tab, "z")
    assert decided(tab).startswith("0 of ")


def test_the_page_shows_more_cards_when_they_are_needed(opened):
    tab = opened(made(600, wrong=0.5))
    begin(tab, 47)
    press(tab, "y")
    assert current(tab) == 48
    assert tab.locator(".card:visible").count() == 96


def test_one_card_and_its_buttons_are_reached_by_tab(opened):
    tab = opened(made())
    begin(tab, 2)
    press(tab, "Tab", "Tab", "Enter")
    assert said(tab, 2)[0].startswith("= stays")
    assert tab.locator(".card[tabindex='0']").count() == 1
    assert tab.locator(".deciding button[tabindex='0']").count() == 5


def test_decisions_survive_the_browser_and_another_tab_sees_them(opened):
    found = made()
    tab = opened(found)
    begin(tab)
    press(tab, "y", "n")
    tab.locator("#reviewer").fill("Ann")
    before = said(tab, 0), said(tab, 1), decided(tab)
    tab.reload()
    assert (said(tab, 0), said(tab, 1), decided(tab)) == before
    assert tab.locator("#reviewer").input_value() == "Ann"
    other = tab.context.new_page()
    opened(found, tab=other)
    assert decided(other) == before[2]
    begin(other, 5)
    press(other, "o")
    # Not wait_for_function: the page's own rules forbid what that does while it waits.
    tab.locator("#decided", has_text=re.compile(r"^\s*3 of")).wait_for()
    assert said(tab, 5) == ["∅ none of these"]
    begin(tab, 6)
    press(tab, "u")
    assert decided(tab).startswith("4 of")


def test_two_reports_do_not_mix(opened):
    tab = opened(made())
    begin(tab)
    press(tab, "y")
    assert decided(opened(made(seed=1), "other.html")).startswith("0 of ")
    assert decided(opened(made(), "copy.html", title="the same audit")).startswith("1 of ")


def test_another_class_is_found_by_typing_or_by_mouse(opened):
    found = made(300, 30, classes=[f"<b>kind {i}" for i in range(30)])
    tab = opened(found)
    begin(tab)
    press(tab, "c", "2", "9", "Enter")
    assert said(tab, 0) == ["✓ now <b>kind 29"]
    assert current(tab) == 1
    click(tab, 1, "other")
    tab.locator("#offered option").nth(4).click()
    given = found.given[found.order[1]]
    assert said(tab, 1) == ["✓ now <b>kind 4" if given != 4 else "= stays <b>kind 4"]
    press(tab, "c", "Escape")
    assert current(tab) == 2
    name = found.classes[found.given[found.order[2]]]
    press(tab, "c")
    tab.keyboard.type(name)
    press(tab, "Enter")
    assert said(tab, 2) == [f"= stays {name}"]
    press(tab, "c")
    tab.keyboard.type("no such class")
    press(tab, "Enter")
    assert tab.locator("#chooser").is_visible()


def test_undecided_cards_alone(opened):
    found = made()
    tab = opened(found)
    begin(tab)
    press(tab, "y", "n", "u")
    tab.locator("#undecided").check()
    left = found.to_review - 3
    assert tab.locator("#count").text_content().startswith(f"Showing {min(48, left)} of {left} ")
    assert not tab.locator(".card").first.is_visible()
    begin(tab, 3)
    press(tab, "y", "y")
    assert current(tab) == 5
    assert not tab.locator(".card").nth(4).is_visible()
    press(tab, "z")
    assert current(tab) == 4


def test_everything_can_be_decided(opened):
    tab = opened(made(20, 2))
    begin(tab, 5)
    press(tab, *"y" * 20)
    assert decided(tab).startswith("20 of 20 decided")
    assert tab.evaluate("document.activeElement.id") == "download"
    tab.locator("#undecided").check()
    assert tab.locator("#none").text_content() == "No undecided label matches."


def test_clearing_all_asks_once_more(opened):
    tab = opened(made())
    assert tab.locator("#clear").is_disabled()
    begin(tab)
    press(tab, "y", "n")
    tab.locator("#clear").click()
    assert tab.locator("#clear").text_content() == "Really clear all?"
    tab.locator("#reviewer").focus()
    tab.locator("#clear").click()
    assert decided(tab).startswith("2 of ")
    tab.locator("#clear").click()
    assert decided(tab).startswith("0 of ")
    tab.reload()
    assert decided(tab).startswith("0 of ")


def test_a_browser_that_keeps_nothing_says_so_and_goes_on(opened, tmp_path):
    found = made()
    tab = opened(found)
    tab.evaluate("void (Storage.prototype.setItem = () => { throw new Error('full') })")
    begin(tab)
    press(tab, "y")
    assert "cannot keep decisions" in tab.locator("#said").text_content()
    press(tab, "n", "o")
    assert "cannot keep decisions" in tab.locator("#said").text_content()
    assert decided(tab).startswith("3 of ")
    assert len(download(tab, tmp_path / "d.jsonl")) == 3


def test_a_page_without_storage_works(opened):
    tab = opened(made())
    tab.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied') } })"
    )
    tab.reload()
    assert "cannot keep decisions" in tab.locator("#said").text_content()
    begin(tab)
    press(tab, "y", "n", "z")
    assert decided(tab).startswith("1 of ")


@pytest.mark.parametrize(
    "text", ["nonsense", "null", '{"name":1,"decisions":{"0":{"decision":"x"}},"taken":[]}']
)
def test_damaged_storage_is_no_decision(opened, text):
    tab = opened(made())
    begin(tab)
    press(tab, "y")
    tab.evaluate("text => localStorage.setItem(Object.keys(localStorage)[0], text)", text)
    tab.reload()
    assert decided(tab).startswith("0 of ")
    begin(tab)
    press(tab, "y")
    assert decided(tab).startswith("1 of ")


# The file ---------------------------------------------------------------------------------------


def test_the_file_merges_into_a_review(opened, tmp_path):
    found = made()
    tab = opened(found)
    begin(tab)
    press(tab, "y", "n", "o", "u", "c")
    tab.keyboard.type(found.classes[2])
    press(tab, "Enter")
    events = download(tab, tmp_path / "d.jsonl")
    rows = found.order[:5].tolist()
    assert [event.id for event in events] == [found.ids[row] for row in rows]
    choices = [event.decision for event in events[:4]]
    assert choices == ["relabel", "keep", "none", "unsure"]
    assert [event.given for event in events] == [found.classes[found.given[row]] for row in rows]
    assert events[0].label == found.classes[found.suggested[rows[0]]]
    assert {(event.how, event.reviewer, event.label is None) for event in events[1:4]} == {
        ("report", "Ann", True)
    }
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}\+00:00", event.time) for event in events)
    opened_review = review(found, tmp_path)
    assert opened_review.merge(events, "d.jsonl") == 5
    assert opened_review.progress().reviewed == 5
    assert opened_review.merge(download(tab, tmp_path / "again.jsonl"), "again.jsonl") == 0


def test_keys_change_with_the_decision_only(opened, tmp_path):
    found = made()
    tab = opened(found)
    begin(tab)
    press(tab, "y", "n")
    first = download(tab, tmp_path / "1.jsonl")
    begin(tab, 0)
    press(tab, "y")  # the same again
    begin(tab, 1)
    press(tab, "o")
    tab.reload()
    second = download(tab, tmp_path / "2.jsonl")
    assert first[0] == second[0]
    assert first[1].key != second[1].key
    merged = review(found, tmp_path)
    assert [merged.merge(events, "") for events in (first, second)] == [2, 1]
    assert merged.progress().wrong == 2


def test_what_is_taken_back_after_a_download_is_taken_back_in_the_review(opened, tmp_path):
    found = made()
    tab = opened(found)
    begin(tab)
    press(tab, "y", "n", "o")
    merged = review(found, tmp_path)
    merged.merge(download(tab, tmp_path / "1.jsonl"), "")
    begin(tab, 3)
    press(tab, "u", "z")  # never downloaded, so nobody need hear of it
    begin(tab, 0)
    press(tab, "z")
    events = download(tab, tmp_path / "2.jsonl", "Anna")
    assert [event.decision for event in events] == ["undo", "keep", "none"]
    assert merged.merge(events, "") == 1
    assert merged.progress().reviewed == 2


def test_hostile_names_come_back_exactly(opened, tmp_path):
    ids = [f"{HOSTILE[i % 8]}{i}" for i in range(40)]
    found = made(40, len(HOSTILE), classes=list(HOSTILE), ids=ids, wrong=0.9)
    tab = opened(found, title=HOSTILE[1])
    for number in range(tab.locator(".card").count()):
        begin(tab, number)
        press(tab, "y")
    assert tab.evaluate("window.hit") is None
    events = download(tab, tmp_path / "d.jsonl", HOSTILE[0])
    rows = {plain(name): row for row, name in enumerate(ids)}
    assert len(events) > 15
    for event in events:
        row = rows[event.id]
        assert len(ids[row]) < 9000
        assert event.label == plain(HOSTILE[found.suggested[row]])
        long = found.given[row] == 5
        assert event.given == ("" if long else plain(HOSTILE[found.given[row]]))
    assert review(found, tmp_path).merge(events, "") == len(events)
    long = next(n for n, row in enumerate(found.order) if row % 8 == 5)
    card = tab.locator(".card").nth(long)
    assert "too long" in card.locator(".deciding").text_content()


def test_a_name_is_asked_for_and_the_file_is_called_like_the_page(opened):
    tab = opened(made())
    tab.locator("#reviewer").fill(" ")
    tab.locator("#download").click()
    assert "your name" in tab.locator("#said").text_content()
    tab.locator("#reviewer").fill("Ann")
    tab.locator("#download").click()
    assert tab.locator("#said").text_content() == "Nothing is decided yet."
    begin(tab)
    press(tab, "y")
    with tab.expect_download() as waiting:
        tab.locator("#download").click()
    assert waiting.value.suggested_filename == "My-photos-1-decisions.jsonl"


# Without a script, and on paper -----------------------------------------------------------------


def test_nothing_of_it_is_seen_without_a_script_or_on_paper(tmp_path, browser_or_skip):
    write_report(made(), tmp_path / "r.html", title="t", image=noise_image)
    parts = ("#bar", "#keys", "#chooser", ".deciding", "#undecided")
    for script in (False, True):
        with visit(browser_or_skip, java_script_enabled=script) as tab:
            tab.goto((tmp_path / "r.html").as_uri())
            if script:
                begin(tab)
                press(tab, "y")
                tab.emulate_media(media="print")
            for part in parts:
                assert not tab.locator(f"{part}:visible").count(), part


def test_the_script_shows_names_as_the_page_does(opened):
    odd = "a\u202eb\nc\u2028\x07\u061c"
    tab = opened(made(30, 2, classes=[odd, "b"]))
    begin(tab)
    press(tab, "c")
    assert tab.locator("#offered option").first.text_content() == shortened(odd, 60)
