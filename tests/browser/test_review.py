"""A person's whole session on the review page, in a real browser."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from serving import TOKEN, served
from test_journal import disk_of

from audited import audited_run, write_digits
from browsing import visit
from unswayed import Run
from unswayed.cli import main
from unswayed.review import Slot

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=20_000)  # other tests may keep the cores busy
WIDE = {"viewport": {"width": 1440, "height": 900}}


@pytest.fixture
def client(run):
    with served(run, recheck=0.0) as made:
        yield made


@pytest.fixture
def page(browser_or_skip, client):
    with visit(browser_or_skip, allowed="status of (409|507)", **WIDE) as tab:
        yield opened(tab, client)


def opened(tab, client):
    tab.goto(f"http://127.0.0.1:{client.port}/?token={TOKEN}")
    expect(tab.locator("#single")).to_be_visible()
    return tab


def journal(client):
    file = client.review.journal.path
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def press(tab, keys):
    """Press keys one after the other, and wait until everything is saved."""
    for key in keys:
        tab.keyboard.press(key)
    saved(tab)


def saved(tab):
    expect(tab.locator("#saved")).to_have_text("all saved")


def test_a_session_by_keyboard(page, client):
    found = client.review.found
    rows = found.order.tolist()
    press(page, "yn2oux")
    said = [(line["id"], line["decision"], line.get("label")) for line in journal(client)]
    names = found.classes
    second = names[1]
    wanted = [
        ("relabel", names[found.suggested[rows[0]]]),
        ("keep", None),
        ("keep", None) if names[found.given[rows[2]]] == second else ("relabel", second),
        ("none", None),
        ("unsure", None),
        ("remove", None),
    ]
    assert said == [(found.ids[row], *each) for row, each in zip(rows[:6], wanted, strict=True)]
    expect(page.locator("#id")).to_have_text(found.ids[rows[6]])
    expect(page.locator("#reviewed")).to_have_text("6")
    page.keyboard.press("ArrowRight")  # moving decides nothing
    page.keyboard.press("j")
    expect(page.locator("#id")).to_have_text(found.ids[rows[8]])
    page.keyboard.press("k")
    assert len(journal(client)) == 6
    page.keyboard.press("c")  # by part of a name
    page.keyboard.type("wo")
    expect(page.locator("#picker-list li")).to_have_text(["two"])
    press(page, ["Enter"])
    assert journal(client)[-1]["id"] == found.ids[rows[7]]
    assert journal(client)[-1].get("label") in ("two", None)
    page.keyboard.press("Space")
    expect(page.locator("#zoom")).to_be_visible()
    page.keyboard.press("Space")
    expect(page.locator("#zoom")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    press(page, "zz")
    expect(page.locator("#reviewed")).to_have_text("5")
    press(page, ["Shift+Z"])
    expect(page.locator("#reviewed")).to_have_text("6")
    assert [line["decision"] for line in journal(client)[-3:]] == ["undo", "undo", "redo"]


def test_a_session_by_mouse(page, client):
    rows = client.review.found.order.tolist()
    ids = client.review.found.ids
    page.click("[data-do=accept]")
    page.click("[data-do=keep]")
    page.click("#classes button:nth-child(3)")
    saved(page)
    assert [line["id"] for line in journal(client)] == [ids[row] for row in rows[:3]]
    page.click("#undo")
    expect(page.locator("#reviewed")).to_have_text("2")
    page.click("#redo")
    expect(page.locator("#reviewed")).to_have_text("3")
    page.click("#as-grid")
    expect(page.locator(".tile")).to_have_count(48)
    page.locator(".tile").nth(5).click()
    press(page, "n")
    assert journal(client)[-1]["id"] == ids[rows[5]]
    page.locator(".tile").nth(7).dblclick()
    expect(page.locator("#id")).to_have_text(ids[rows[7]])
    page.click("#strip li:nth-child(1)")
    page.click("#picture")
    page.click("#zoom")
    expect(page.locator("#zoom")).to_be_hidden()


def test_the_picture_and_its_evidence_are_shown(page, client):
    row = int(client.review.found.order[0])
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.getElementById('image').naturalWidth") == 64
    assert f"image/{row}/full" in page.locator("#image").get_attribute("src")
    expect(page.locator("#near-list li")).to_have_count(5)
    expect(page.locator("#chance-text")).to_contain_text("% wrong")
    expect(page.locator("#classes button")).to_have_count(3)
    expect(page.locator("#to-stop")).to_contain_text("to the stop line")
    page.keyboard.press("ArrowRight")
    there = "(i => i.complete && i.naturalWidth > 0)(document.getElementById('image'))"
    assert page.evaluate(there)  # it was fetched ahead


def test_a_key_that_is_held_down_decides_once(page, client):
    for key in ("2", "y"):
        before = len(journal(client))
        for _ in range(8):
            page.keyboard.down(key)  # the browser marks all but the first as repeated
        page.keyboard.up(key)
        saved(page)
        assert len(journal(client)) == before + 1


def test_an_undo_waits_for_what_is_being_saved_and_nothing_comes_between(page, client):
    slow = threading.Event()

    def later(route):
        slow.wait(0.3)
        route.continue_()

    page.route("**/api/decide", later)
    for key in "yzn":
        page.keyboard.press(key)
    expect(page.locator("#toast")).to_have_text("Undone")
    said = [line["decision"] for line in journal(client)]
    assert said == ["relabel", "undo"]  # the third key was pressed while nothing was certain
    page.unroute("**/api/decide")


def test_letters_are_those_of_the_key_on_any_keyboard(page, client):
    page.keyboard.press("N")  # Caps Lock
    saved(page)
    fire = "new KeyboardEvent('keydown', { key: 'н', code: 'KeyY', bubbles: true })"
    page.evaluate(f"document.body.dispatchEvent({fire})")
    expect(page.locator("#reviewed")).to_have_text("2")
    assert [line["decision"] for line in journal(client)] == ["keep", "relabel"]


def test_an_earlier_decision_is_back_after_an_undo(page, client):
    press(page, "n")
    page.keyboard.press("k")
    press(page, "y")
    press(page, "z")
    expect(page.locator("#chips")).to_contain_text("kept")


def test_all_disputes_are_settled_one_after_the_other(page, client):
    for row in (1, 2, 3):
        client.review.decide(Slot(row), "keep", "anna")
        client.review.decide(Slot(row), "none", "ben")
    page.reload()
    page.click("[data-tab=disputed]")
    expect(page.locator("#opinions")).to_contain_text("anna: kept")
    press(page, "nnn")
    expect(page.locator("#empty-text")).to_have_text("No decision is disputed.")
    assert client.review.progress().disputed == 0
    page.keyboard.press("Space")  # on an empty page, nothing happens


def test_escape_changes_no_name(page):
    page.click("#who")
    page.fill("#name-text", "oops")
    page.keyboard.press("Escape")
    expect(page.locator("#who")).to_have_text("as me")


def test_undo_works_across_a_reload(page, client):
    press(page, "yy")
    page.reload()
    expect(page.locator("#reviewed")).to_have_text("2")
    last = journal(client)[-1]["id"]
    press(page, "z")
    expect(page.locator("#reviewed")).to_have_text("1")
    expect(page.locator("#id")).to_have_text(last)


def test_a_full_disk_is_said_and_the_decision_is_kept_and_sent_again(page, client):
    press(page, "y")
    with disk_of(client.review.journal.path.stat().st_size + 10):
        page.keyboard.press("n")
        expect(page.locator("#alert")).to_contain_text("not saved: File too large")
        expect(page.locator("#saved")).to_have_text("1 not saved")
        assert len(journal(client)) == 1
    saved(page)
    expect(page.locator("#alert")).to_be_hidden()
    assert [line["decision"] for line in journal(client)] == ["relabel", "keep"]


def start(run, port):
    words = ["-m", "unswayed", "review", str(run.path), "--no-browser", "--port", str(port)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    return server, re.search(r"http\S+", server.stdout.readline())[0]


def test_kill_9_between_two_decisions_loses_and_doubles_nothing(browser_or_skip, run):
    server, address = start(run, 0)
    port = int(re.search(r":(\d+)/", address)[1])
    context = browser_or_skip.new_context(**WIDE)
    try:
        tab = context.new_page()
        tab.goto(address)
        expect(tab.locator("#single")).to_be_visible()
        press(tab, "y")
        server.send_signal(signal.SIGKILL)
        server.communicate()
        tab.keyboard.press("n")  # into the void
        expect(tab.locator("#alert")).to_contain_text("does not answer")
        expect(tab.locator("#saved")).to_have_text("1 not saved")
        server, again = start(run, port)
        assert again == address
        saved(tab)
        tab.reload()
        expect(tab.locator("#reviewed")).to_have_text("2")
        lines = (run.path / "review.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["decision"] for line in lines] == ["relabel", "keep"]
    finally:
        context.close()
        server.kill()
        server.communicate()


def test_two_reviewers_see_that_they_differ_and_settle_it(page, client, browser_or_skip):
    with visit(browser_or_skip, **WIDE) as other:
        opened(other, client)
        for tab, name in ((page, "anna"), (other, "ben")):
            tab.click("#who")
            tab.fill("#name-text", name)
            tab.keyboard.press("Enter")
            expect(tab.locator("#who")).to_have_text(f"as {name}")
        press(page, "y")
        press(other, "n")  # the same label, which ben's page had already
        expect(other.locator("[data-tab=disputed]")).to_contain_text("1")
        other.click("[data-tab=disputed]")
        expect(other.locator("#opinions")).to_contain_text("anna: →")
        expect(other.locator("#opinions")).to_contain_text("ben: kept")
        press(other, "n")
        expect(other.locator("#empty-text")).to_have_text("No decision is disputed.")
    said = [(line["reviewer"], line.get("how", "single")) for line in journal(client)]
    assert said == [("anna", "single"), ("ben", "single"), ("ben", "settle")]


def test_filters_and_the_map_narrow_the_queue(page, client):
    found, review = client.review.found, client.review
    pairs = Counter(zip(found.given.tolist(), found.suggested.tolist(), strict=True))
    given, suggested = next(iter(pairs))
    page.click(f"#map button[data-given='{given}'][data-suggested='{suggested}']")
    expect(page.locator("#where")).to_contain_text(f": {pairs[given, suggested]} undecided")
    page.click("#clear")
    expect(page.locator("#where")).to_contain_text(f": {len(found)} undecided")
    page.fill("#low", "50")
    expect(page.locator("#where")).to_contain_text(f": {int((found.p_wrong >= 0.5).sum())} und")
    page.click("#clear")
    page.fill("#text", "2-1")
    matching = sum("2-1" in name for name in found.ids)
    expect(page.locator("#where")).to_contain_text(f": {matching} undecided")
    page.click("#clear")
    page.select_option("#split", "held out")
    expect(page.locator("#where")).to_contain_text(f": {int(review.held_out.sum())} undecided")
    page.click("#clear")
    expect(page.locator("#where")).to_contain_text(f": {len(found)} undecided")
    press(page, "y")
    page.select_option("#decided", "yes")
    expect(page.locator("#where")).to_contain_text(": 1 decided")
    expect(page.locator("#chips")).to_contain_text("→")


def test_accepting_a_selection_is_told_first_and_undone_at_once(page, client):
    page.click("#accept-all")
    expect(page.locator("#toast")).to_contain_text("choose a filter first")
    page.fill("#low", "60")
    expect(page.locator("#where")).to_contain_text("filtered")
    count = int((client.review.found.p_wrong >= 0.6).sum())
    page.click("#accept-all")
    expect(page.locator("#bulk-text")).to_contain_text(f"{count} undecided labels match")
    expect(page.locator("#bulk-text")).to_contain_text("expected to be right (")
    page.click("#bulk button[value=no]")
    assert not journal(client)
    page.click("#accept-all")
    page.click("#bulk-yes")
    expect(page.locator("#unseen")).to_have_text(f"{count} accepted unseen")
    expect(page.locator("#reviewed")).to_have_text("0")
    assert {line["how"] for line in journal(client)} == {"bulk"}
    page.locator("#low").blur()
    page.keyboard.press("z")
    expect(page.locator("#unseen")).to_be_hidden()
    expect(page.locator("#where")).to_contain_text(f": {count} undecided")


def test_checks_are_mixed_in_and_measure_audit_and_reviewer(run, browser_or_skip):
    with served(run, recheck=0.5) as client, visit(browser_or_skip, **WIDE) as tab:
        opened(tab, client)
        blind = 0
        for number in range(75):
            hidden = tab.locator("#chance-text").inner_text().startswith("Blind")
            blind += hidden
            tab.keyboard.press("n" if hidden else "y")
            expect(tab.locator("#reviewed")).to_have_text(decided(client, number + 1))
        how = Counter(line.get("how", "single") for line in journal(client))
        assert how["recheck"] >= 10
        assert how["repeat"] >= 1
        assert blind > how["recheck"] + how["repeat"]  # some suspects are blind too
        expect(tab.locator("#recall")).to_contain_text(f"{how['recheck']} checks")


def test_decisions_change_p_wrong_visibly_and_move_the_stop_line(page, client):
    before = page.inner_text("#hidden")
    for _ in range(4):
        press(page, "nnnnn")
    expect(page.locator("#fitted")).to_contain_text("fitted to 20 decisions")
    expect(page.locator("#toast")).to_contain_text("was fitted again")
    now = client.review.progress()
    assert page.inner_text("#hidden") != before
    line = f"{now.to_stop} more to the stop line" if now.to_stop else "You can stop here"
    expect(page.locator("#to-stop")).to_contain_text(line)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chance-was")).to_contain_text("the audit said")


def test_decisions_are_exported_and_trained_on(page, client, run, tmp_path, capsys):
    press(page, "yyx")
    first, second, third = client.review.found.order[:3].tolist()
    found = client.review.found
    labels = tmp_path / "labels.csv"
    assert main(["export", str(run.path), "--as", "labels", "--to", str(labels)]) == 0
    assert "2 of 180 labels change: 2 by me" in capsys.readouterr().out
    words = ["train", str(run.path / "recipe.toml"), f"data.labels={labels}", "train.epochs=1"]
    assert main([*words, "--run", str(tmp_path / "again")]) == 0
    again = Run(tmp_path / "again").samples()
    given = dict(zip(again.ids.tolist(), again.given.tolist(), strict=True))
    assert given[found.ids[first]] == found.suggested[first]
    assert given[found.ids[second]] == found.suggested[second]
    assert found.ids[third] not in given
    assert len(given) == 179


def test_a_picture_that_is_gone_is_said(browser_or_skip, tmp_path):
    run = audited_run(write_digits(tmp_path / "digits", 20, 3), tmp_path / "run", "train.epochs=1")
    with served(run) as client:
        row = int(client.review.found.order[0])
        (tmp_path / "digits" / client.review.found.ids[row]).unlink()
        tab = browser_or_skip.new_page()
        opened(tab, client)
        expect(tab.locator("#picture.missing")).to_be_visible()
        press(tab, "x")
        tab.close()


def decided(client, lines):
    """Return how many samples are decided once the journal has so many lines."""
    end = time.monotonic() + 20
    while len(journal(client)) < lines and time.monotonic() < end:
        time.sleep(0.01)
    return str(len({line["id"] for line in journal(client)}))


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "line\nbreak\u202eevil",
    "x" * 300,
    "{{7*7}} ${7*7}",
)


def test_names_of_strangers_are_text_and_nothing_runs(browser_or_skip, tmp_path):
    write_digits(tmp_path / "digits", 30, 4)
    pictures = sorted((tmp_path / "digits").rglob("*.png"))
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "label", "id"))
        for number, path in enumerate(pictures):
            label = HOSTILE[number % len(HOSTILE)]
            relative = path.relative_to(tmp_path).as_posix()
            writer.writerow((relative, label, f"{HOSTILE[number % 5]} {number}"))
    options = ("data.name=manifest", f"data.path={tmp_path / 'labels.csv'}", "train.epochs=1")
    run = audited_run(tmp_path, tmp_path / "run", *options)
    with served(run) as client, visit(browser_or_skip, **WIDE) as tab:
        opened(tab, client)
        for key in ("g", "g", "c", "Escape"):
            tab.keyboard.press(key)
        expect(tab.locator("#picker")).to_be_hidden()
        press(tab, "ynz")
        expect(tab.locator("#reviewed")).to_have_text("1")
        tab.hover("#worst li button")
        assert tab.title() == "Review run"
        text = tab.inner_text("body")
        assert "<img src=x" in text
        assert "\u202e" not in text
        assert tab.locator("main img[src=x]").count() == 0
        ids = {line.get("id") for line in journal(client)} - {None}
        assert ids <= {*client.review.verdicts.ids}


def test_it_can_be_used_with_the_keyboard_alone_and_read_aloud(page):
    for name in ("role", "aria-label"):
        assert page.locator(f"#tabs[{name}]").count() == 1
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button')].filter((b) => b.checkVisibility() && "
        "!b.textContent.trim() && !b.ariaLabel && !b.title).length"
    )
    assert unnamed == 0
    fields = page.evaluate(
        "[...document.querySelectorAll('input, select')].filter((f) => f.checkVisibility() && "
        "!f.labels.length && !f.ariaLabel).length"
    )
    assert fields == 0
    expect(page.locator("#say")).to_contain_text("Labelled")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1024, 1440])
def test_text_has_contrast_and_nothing_is_cut_off(browser_or_skip, client, scheme, width):
    options = {"viewport": {"width": width, "height": 768}, "color_scheme": scheme}
    with visit(browser_or_skip, **options) as tab:
        opened(tab, client)
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        low = tab.evaluate(CONTRAST)
        assert not low


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((x) => x / 255)
    .map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("kbd, #map, :disabled, .unseen")) continue;
    const [a, b] = [parse(getComputedStyle(node).color), behind(node)].map(luminance);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([node.textContent.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return found;
}"""


def test_both_servers_of_one_run_agree(run, client):
    with served(run) as other:
        client.review.decide(Slot(3), "keep", "me")
        assert other.ask("progress")[1]["progress"]["reviewed"] == 1
