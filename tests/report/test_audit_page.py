from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from example_audits import HOSTILE, made, noise_image

from browsing import visit
from unswayed import UsageError, write_report
from unswayed.audits.result import FLAGS, STOP
from unswayed.data.progress import listening
from unswayed.report.audit_page import CARDS, LIMIT, choose, class_rows, page, verdict

SECTIONS = ("verdict", "rate", "labels", "pairs", "classes", "depth", "limits")
VOID = {"meta", "input", "br"}


class Tree(HTMLParser):
    """Collects elements and checks that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.stack, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not self.stack or self.stack[-1] not in ("style", "script"):
            self.text.append(data)

    def ids(self):
        return {attrs["id"] for _, attrs in self.elements if "id" in attrs}

    def of_class(self, name):
        return [attrs for _, attrs in self.elements if name in (attrs.get("class") or "").split()]


def drawn(found, image=noise_image, **options):
    return page(found, **{"title": "t", "facts": {}, "commands": (), **options}, image=image)


def test_every_section_is_there():
    text = drawn(made(), facts={"cost": "2 h"}, commands=[("look", "unswayed x 'a b'")])
    tree = Tree(text)
    assert {*SECTIONS, *FLAGS, "reliability", "next"} <= tree.ids()
    said = " ".join(tree.text)
    for words in ("the samples are <few>", "2 h", "unswayed x 'a b'", "no true label"):
        assert words in said


def test_nothing_is_loaded_from_outside():
    text = drawn(made())
    for tag, attrs in Tree(text).elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "image", "use")
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")
    assert set(re.findall(r"url\((.{5})", text)) == {"data:"}
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


def test_hostile_names_stay_text():
    names = [name for name in HOSTILE if "\x00" not in name]
    found = made(60, len(names), classes=names, ids=[f"{HOSTILE[i % 8]}{i}" for i in range(60)])
    calm = Tree(drawn(made(60, len(names))))
    text = drawn(found, title=HOSTILE[1], facts={HOSTILE[0]: HOSTILE[1]}, commands=[HOSTILE[:2]])
    tree = Tree(text)
    kinds = {tag for tag, _ in tree.elements}
    assert kinds <= {tag for tag, _ in calm.elements} | {"dl", "dt", "dd", "code"}
    assert not [key for _, attrs in tree.elements for key in attrs if key.startswith("on")]
    assert text.count("<script") == text.count("</script") == 2  # code, and data for it
    assert not {"\u202e", "\u2028", "\x00"} & set(text)
    assert max(len(value or "") for _, attrs in tree.elements for value in attrs.values()) < 700
    assert "{{ 7 * 7 }}" in "".join(tree.text)


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_a_page_stays_small_for_data_of_any_size(kind):
    n, k = 200_000, 1000
    names = [f"{HOSTILE[0] * 50}{i}" for i in range(k)] if kind == "hostile" else None
    ids = [f'{i}"&<>' * 40 for i in range(n)] if kind == "hostile" else None
    found = made(n, k, classes=names, ids=ids)
    text = drawn(found)
    assert len(text.encode()) < LIMIT
    tree = Tree(text)
    assert 200 < len(tree.of_class("card")) <= CARDS
    assert 30 <= len(tree.of_class("cell")) <= 900


def test_equal_inputs_give_equal_bytes(tmp_path):
    for name in ("a.html", "b.html"):
        write_report(made(), tmp_path / name, title="t", image=noise_image)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    "found",
    [
        made(300, 2),
        made(10, 3),
        made(2, 2, full=False),
        made(300, 4, full=False),
        made(300, 4, wrong=0, full=False),
        made(300, 31),
    ],
    ids=["two classes", "ten rows", "two rows", "no optional field", "nothing wrong", "many"],
)
@pytest.mark.parametrize("image", [noise_image, None], ids=["pictures", "no pictures"])
def test_any_audit_has_a_page(found, image):
    tree = Tree(drawn(found, image))
    assert set(SECTIONS) <= tree.ids()
    assert len(tree.of_class("card")) >= min(len(found), 24)
    assert bool(tree.of_class("large")) == (image is not None)


def test_the_verdict_is_one_line_of_numbers():
    found = made(1000)
    share, review = 100 * found.noise.rate, found.to_review
    assert verdict(found).startswith(f"About {share:.0f} % of 1,000 labels are wrong (between ")
    assert f"Look at {review:,} of them" in verdict(found)
    assert verdict(made(1000, wrong=0)).startswith("Hardly any of 1,000 labels is wrong (at most ")
    assert "None stands out" in verdict(made(1000, wrong=0))


def test_cards_are_the_worst_of_all_and_of_each_pair():
    found = made(5000, 5)
    certain = (found.given == 0) & (found.suggested == 1)
    found.p_wrong[:] = np.where(certain, 0.99, 0.3)
    found.p_wrong[:1000] = 0.1
    order = found.order
    rows = choose(found, order, 60)
    assert len(rows) == len(set(rows.tolist())) == 60
    assert rows[:20].tolist() == order[:20].tolist()
    assert (found.p_wrong[rows] >= STOP).all()
    assert len(set(zip(found.given[rows], found.suggested[rows], strict=True))) == 20
    assert (np.diff(found.p_wrong[rows]) <= 0).all()


def test_the_table_of_classes_adds_up():
    found = made(1000)
    rows = class_rows(found)
    assert sum(row.labels for row in rows) == 1000
    assert sum(row.wrong for row in rows) == pytest.approx(found.p_wrong.sum())
    assert sum(row.review for row in rows) == found.to_review
    assert [row.wrong for row in rows] == sorted((row.wrong for row in rows), reverse=True)


def test_groups_are_shown_together_with_their_labels():
    text = drawn(made())
    duplicate = text.partition('id="duplicate"')[2].partition("</section>")[0]
    conflict = text.partition('id="conflict"')[2].partition("</section>")[0]
    labels = [set(re.findall(r"<bdi>(class \d)", part)) for part in (duplicate, conflict)]
    assert [len(names) for names in labels] == [1, 2]
    assert duplicate.count('class="group"') == conflict.count('class="group"') == 1


def test_images_that_cannot_be_read_are_said_and_not_tried_for_ever():
    tried = []

    def image(row):
        tried.append(row)
        raise UsageError("the <disk> is gone")

    text = drawn(made(), image)
    assert len(tried) == 5
    assert "5 pictures could not be read, such as: the &lt;disk&gt; is gone" in text


def test_each_image_is_asked_for_once_and_progress_is_told():
    tried, told = [], []

    def image(row):
        tried.append(row)
        return noise_image(row)

    with listening(lambda what, done, total: told.append((what, done, total))):
        drawn(made(), image)
    assert len(tried) == len(set(tried))
    assert {what for what, _, _ in told} == {"making the report"}
    assert told[-1][1] == told[-1][2]


def test_filters_work_in_a_browser_and_hostile_names_do_nothing(tmp_path, browser_or_skip):
    found = made(600, len(HOSTILE), classes=list(HOSTILE), wrong=0.5)
    write_report(found, tmp_path / "r.html", title=HOSTILE[1], image=noise_image)
    with visit(browser_or_skip) as tab:
        tab.goto((tmp_path / "r.html").as_uri())
        cards, count = tab.locator(".card:visible"), tab.locator("#count")
        assert tab.evaluate("window.hit") is None
        loaded = tab.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
        assert not [name for name in loaded if not name.startswith("data:")]
        assert cards.count() == 48
        assert count.text_content() == f"Showing 48 of {found.to_review} labels."
        pair = tab.locator(".pair").first
        pair.click()
        from_, to = (int(pair.get_attribute(f"data-{word}")) for word in ("given", "true"))
        fits = (found.given == from_) & (found.suggested == to)
        assert cards.count() == (fits & (found.p_wrong >= STOP)).sum()
        tab.locator("#least").fill("70")
        assert cards.count() == (fits & (found.p_wrong.round(4) >= 0.7)).sum()
        tab.locator(".sort").nth(1).click()
        first = tab.locator("tbody td").first.get_attribute("data-v")
        assert int(first) == np.bincount(found.given).max()
        tab.locator("#reset").click()
        tab.locator("#more").click()
        assert cards.count() == 96
        assert tab.evaluate("given.value + window['true'].value + least.value") == "0"
