"""The report of an audit: one HTML file, for whoever has to decide about the labels.

The page loads nothing from outside. It stays below `LIMIT` bytes for data of any size, because
everything that grows with the data is cut: rows, classes, names and pictures. Its reader can decide
about the labels, and send the decisions back as a file.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

import unswayed
from unswayed.audits.result import FLAGS, STOP, Audit
from unswayed.data.progress import tell
from unswayed.files import write_text
from unswayed.report import audit_charts as charts
from unswayed.report.audit_charts import Pair
from unswayed.report.decisions import decision_data, script_json
from unswayed.report.templates import environment, fill
from unswayed.report.text import Name, chance, digits, named, percent, shortened
from unswayed.report.thumbnails import Picture, Thumbnails

LIMIT = 10_000_000
"""Bytes of a page."""

CARD_PICTURES, ALL_PICTURES = 4_800_000, 5_800_000
"""Bytes of pictures after which no card, and no picture of the lists, is added."""

CARDS, FEWEST_CARDS, FIRST_CARDS = 1000, 24, 48
"""Labels on a page; at least; and how many of them are seen before "show more" is pressed."""

FLAGGED, GROUPS, MEMBERS = 18, 10, 6
"""Samples of a list, its groups of duplicates, and samples of a group."""

MAP_CLASSES, PAIRS, TABLE_CLASSES, NEIGHBOURS = 30, 12, 500, 3
LONG_TEXT = 600
INLINED = ("audit", "decisions")


class Neighbour(NamedTuple):
    """A similar sample, as evidence."""

    row: int
    label: Name


class Sample(NamedTuple):
    """A sample with its label."""

    row: int
    id: Name
    label: Name
    p_wrong: float


class Card(NamedTuple):
    """A label that is probably wrong."""

    row: int
    rank: int
    id: Name
    given: int
    suggested: int
    p_wrong: float
    chance: str
    top: list[tuple[Name, str]]
    neighbours: list[Neighbour]
    flags: str


class Listed(NamedTuple):
    """The samples with a flag: how many there are, and some of them."""

    word: str
    meaning: str
    total: int
    samples: list[Sample]
    groups: list[tuple[list[Sample], int]]  # and how many more each has
    all_groups: int


class ClassRow(NamedTuple):
    """A class in the table."""

    number: int
    labels: int
    wrong: float
    share: float
    review: int
    really: int | None


def write_report(
    found: Audit,
    path: str | Path,
    *,
    title: str,
    image: Picture | None = None,
    facts: Mapping[str, str] = {},
    commands: Sequence[tuple[str, str]] = (),
) -> None:
    """Write what an audit found as one HTML file that needs no network.

    >>> import unswayed
    >>> run = unswayed.train("digits", "train.epochs=1", "data.size=8", run="runs/short")
    >>> found = unswayed.audit(run)
    >>> unswayed.write_report(
    ...     found, "report.html", title="Digits", image=lambda row: run.image(found.ids[row])
    ... )

    Args:
        found: the audit.
        path: of the HTML file.
        title: of the page.
        image: returns the image of a row, or None; without it, the page shows ids alone.
        facts: what was done and what it cost, by name.
        commands: what to do next, as (what for, command).
    """
    write_text(Path(path), page(found, title=title, image=image, facts=facts, commands=commands))


def page(
    found: Audit,
    *,
    title: str,
    image: Picture | None,
    facts: Mapping[str, str],
    commands: Sequence[tuple[str, str]],
) -> str:
    """Return the page as text; equal arguments give an equal page."""
    order, names = found.order, [named(str(name), 22) for name in found.classes]
    chosen = choose(found, order, CARDS)
    listed = [_listed(found, word, names) for word in FLAGS]
    flagged = [sample.row for each in listed for sample in _all_samples(each)]
    pictures = Thumbnails(image, {*chosen.tolist(), *flagged})
    cards = _cards(found, order, chosen, names, pictures, len(flagged))
    _picture(flagged, pictures, len(chosen))
    known = charts.pairs(found.noise, len(found))
    classes = class_rows(found)
    parts = {
        "title": shortened(title, LONG_TEXT),
        "version": unswayed.__version__,
        "found": found,
        "verdict": verdict(found),
        "warnings": [shortened(warning, LONG_TEXT) for warning in found.warnings[:20]],
        "names": names,
        "first": FIRST_CARDS,
        "pictured": image is not None,
        "pictures": pictures,
        "trouble": shortened(next(iter(pictures.failed.values()), ""), LONG_TEXT),
        "pairs": known[:PAIRS],
        "map": Markup(_map(known, names)),
        "mapped": min(len(names), MAP_CLASSES),
        "classes": classes[:TABLE_CLASSES],
        "rate": Markup(charts.rate_picture(found.noise)),
        "precision": Markup(charts.precision_picture(found)),
        "reliability": Markup(charts.reliability_picture(found.reliability))
        if len(found.reliability)
        else None,
        "listed": [each for each in listed if each.total],
        "facts": [(shortened(k, 60), shortened(v, LONG_TEXT)) for k, v in facts.items()][:50],
        "commands": [(shortened(a, LONG_TEXT), shortened(b, LONG_TEXT)) for a, b in commands][:20],
        "stop": STOP,
        "percent": percent,
        **_inline(),
    }
    while True:
        decisions = decision_data(found, [card.row for card in cards])
        text = fill(
            "audit.html.j2",
            cards=cards,
            options=_options(cards, known, classes, names),
            decisions=None if decisions is None else script_json(decisions),
            **parts,
        )
        if not cards or len(text.encode()) < LIMIT:
            return text
        cards = cards[: 3 * len(cards) // 4]  # names that are all quotes are long as HTML


def verdict(found: Audit) -> str:
    """Return the result in two sentences."""
    noise, review, count = found.noise, found.to_review, len(found)
    figures = digits(noise.rate or noise.high)
    rate, low, high = (f"{100 * x:.{figures}f}" for x in (noise.rate, noise.low, noise.high))
    said = f"About {rate} % of {count:,} labels are wrong (between {low} and {high} %). "
    if noise.rate * count < 0.5:
        said = f"Hardly any of {count:,} labels is wrong (at most {high} %). "
    if not review:
        return said + "None stands out: no single label is likely enough to be wrong."
    wrong = found.expected_wrong(review)
    about = f"{wrong:,.0f}" if wrong < 100 else f"about {float(f'{wrong:.2g}'):,.0f}"
    verb = "is" if about == "1" else "are"
    return said + f"Look at {review:,} of them: {about} {verb} expected to be wrong."


def choose(found: Audit, order: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the rows of the cards: a third are the worst of all, the rest the worst of each pair.

    Otherwise a class pair that is judged with less certainty would have no card to look at. A pair
    gets cards by the square root of its size.
    """
    worth = order[: max(found.to_review, min(FEWEST_CARDS, len(order)))]
    if len(worth) <= count:
        return worth
    key = found.given[worth] * len(found.classes) + found.suggested[worth]
    _, pair, size = np.unique(key, return_inverse=True, return_counts=True)
    by_pair = np.argsort(pair, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(len(worth), dtype=np.int64)  # of a row in its pair, the worst first
    place[by_pair] = np.arange(len(worth)) - starts[pair[by_pair]]
    fair = np.argsort((place + 0.5) / np.sqrt(size[pair]), kind="stable")
    first = count // 3
    rest = fair[fair >= first][: count - first]
    chosen: NDArray[np.int64] = worth[np.sort(np.concatenate([np.arange(first), rest]))]
    return chosen


def _cards(
    found: Audit,
    order: NDArray[np.int64],
    chosen: NDArray[np.int64],
    names: Sequence[Name],
    pictures: Thumbnails,
    later: int,
) -> list[Card]:
    """Return the cards with their pictures, as many as there is room for."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    cards: list[Card] = []
    for done, row in enumerate(chosen.tolist()):
        tell("making the report", done, len(chosen) + later)
        if pictures.spent > CARD_PICTURES:
            break
        card = _card(found, row, int(rank[row]), names)
        for shown in (row, *(neighbour.row for neighbour in card.neighbours)):
            pictures.add(shown)
        cards.append(card)
    return cards


def _picture(rows: Sequence[int], pictures: Thumbnails, before: int) -> None:
    for done, row in enumerate(rows, start=1):
        tell("making the report", before + done, before + len(rows))
        if pictures.spent <= ALL_PICTURES:
            pictures.add(row)


def _card(found: Audit, row: int, rank: int, names: Sequence[Name]) -> Card:
    top: list[tuple[Name, str]] = []
    if found.top is not None and found.p_top is not None:
        likely = zip(found.top[row].tolist(), found.p_top[row].tolist(), strict=True)
        top = [(names[k], chance(p)) for k, p in likely if p >= 0.005]
    near: list[int] = [] if found.nearest is None else found.nearest[row].tolist()
    others = [other for other in near if 0 <= other < len(found) and other != row]
    return Card(
        row,
        rank,
        named(str(found.ids[row]), 34, keep_end=True),
        int(found.given[row]),
        int(found.suggested[row]),
        round(float(found.p_wrong[row]), 4),
        chance(float(found.p_wrong[row])),
        top,
        [Neighbour(other, names[found.given[other]]) for other in others[:NEIGHBOURS]],
        found.flags.get(row, ""),
    )


def _listed(found: Audit, word: str, names: Sequence[Name]) -> Listed:
    rows = found.flagged(word)
    groups = _groups(found, word, rows) if word in ("duplicate", "conflict") else []
    in_groups = {row for group in groups for row in group}
    alone = [row for row in rows.tolist() if row not in in_groups]

    def sample(row: int) -> Sample:
        name = named(str(found.ids[row]), 15, keep_end=True)
        return Sample(row, name, names[found.given[row]], float(found.p_wrong[row]))

    return Listed(
        word,
        FLAGS[word],
        len(rows),
        [sample(row) for row in alone[:FLAGGED]],
        [
            ([sample(row) for row in group[:MEMBERS]], max(len(group) - MEMBERS, 0))
            for group in groups[:GROUPS]
        ],
        len(groups),
    )


def _groups(found: Audit, word: str, rows: NDArray[np.int64]) -> list[list[int]]:
    """Return rows that belong together: with several labels for a conflict, else with one."""
    wanted = set(rows.tolist())
    if len(found.groups):
        together = [[int(row) for row in group] for group in found.groups]
    elif found.nearest is not None:  # what is flagged nearly equals its nearest neighbour
        pairs = dict.fromkeys(tuple(sorted((row, int(found.nearest[row, 0])))) for row in wanted)
        together = [list(pair) for pair in pairs if pair[0] != pair[1]]
    else:
        together = []
    kept = [
        group
        for group in together
        if wanted.intersection(group)
        and (len(set(found.given[group].tolist())) > 1) == (word == "conflict")
    ]
    return sorted(kept, key=lambda group: (-float(found.p_wrong[group].max()), group))


def _all_samples(listed: Listed) -> Iterator[Sample]:
    for group, _ in listed.groups:
        yield from group
    yield from listed.samples


def class_rows(found: Audit) -> list[ClassRow]:
    """Return the classes, those with the most wrong labels first."""
    k = len(found.classes)
    counts = np.bincount(found.given, minlength=k)
    wrong = np.bincount(found.given, weights=found.p_wrong, minlength=k)
    review = np.bincount(found.given[found.p_wrong >= STOP], minlength=k)
    joint = found.noise.joint.copy()
    np.fill_diagonal(joint, 0)
    really = joint.argmax(axis=1)
    known = joint.max(axis=1) * len(found) >= 0.5
    return [
        ClassRow(
            i,
            int(counts[i]),
            float(wrong[i]),
            float(wrong[i] / max(counts[i], 1)),
            int(review[i]),
            int(really[i]) if known[i] else None,
        )
        for i in np.argsort(-wrong, kind="stable").tolist()
    ]


def _map(known: Sequence[Pair], names: Sequence[Name]) -> str:
    """Return the heat map; of many classes, those of the worst pairs."""
    rows = columns = list(range(len(names)))
    if len(names) > MAP_CLASSES:
        rows, columns = [], []
        for pair in known:
            rows += [pair.given] if pair.given not in rows else []
            columns += [pair.true] if pair.true not in columns else []
            if MAP_CLASSES in (len(rows), len(columns)):
                break
    return charts.heat_map(known, sorted(rows), sorted(columns), names) if known else ""


def _options(
    cards: Sequence[Card], known: Sequence[Pair], classes: Sequence[ClassRow], names: Sequence[Name]
) -> dict[str, list[tuple[int, str]]]:
    """Return the classes that can be filtered by, as given and as probably true ones."""
    given = {card.given for card in cards} | {row.number for row in classes[:TABLE_CLASSES]}
    true = {card.suggested for card in cards} | {pair.true for pair in known[:PAIRS]}
    if len(names) <= MAP_CLASSES:
        given, true = set(range(len(names))), set(range(len(names)))
    return {
        "labelled": [(k, names[k].short) for k in sorted(given)],
        "probably": [(k, names[k].short) for k in sorted(true)],
    }


def _inline() -> dict[str, Any]:
    """Return style sheet and script, and the digest by which the page allows this script alone."""
    made = environment()
    assert made.loader is not None
    style, script = (
        "".join(made.loader.get_source(made, f"{name}.{kind}")[0] for name in INLINED)
        for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": Markup(style), "script": Markup(script), "digest": digest}
