from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from example_audits import HOSTILE, made

from unswayed.audits.result import Bin
from unswayed.report import audit_charts as charts
from unswayed.report.text import named


def parsed(text):
    return ElementTree.fromstring(text)


def of_class(tree, name):
    return [element for element in tree.iter() if element.get("class") == name]


def test_the_interval_of_the_rate_lies_around_its_dot():
    tree = parsed(charts.rate_picture(made().noise))
    (band,), (dot,) = of_class(tree, "band"), of_class(tree, "wrong")
    left, width, middle = float(band.get("x")), float(band.get("width")), float(dot.get("cx"))
    assert left < middle < left + width


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_at_the_end_of_the_scale_is_drawn(rate):
    noise = made().noise._replace(rate=rate, low=rate, high=rate)
    assert 0 <= float(of_class(parsed(charts.rate_picture(noise)), "wrong")[0].get("cx")) <= 440


def test_pairs_are_sorted_and_have_their_interval():
    found = made(1000)
    pairs = charts.pairs(found.noise, 1000)
    assert [(found.classes[p.given], found.classes[p.true], p.wrong) for p in pairs[:3]] == [
        pytest.approx(pair) if isinstance(pair, float) else pair for pair in found.worst_pairs(3)
    ]
    assert all(pair.low < pair.wrong < pair.high for pair in pairs)


def test_a_cell_says_its_pair_and_is_where_it_belongs():
    found = made(1000, 3, classes=["cat", "dog", HOSTILE[0]])
    names = [named(name, 22) for name in found.classes]
    known = charts.pairs(found.noise, 1000)
    tree = parsed(charts.heat_map(known, range(3), range(3), names))
    cells = {(c.get("data-given"), c.get("data-true")): c for c in of_class(tree, "cell")}
    assert len(cells) == 6
    assert cells["0", "1"].get("aria-label").startswith("labelled cat, probably dog: about ")
    squares = {key: cell.find("rect") for key, cell in cells.items()}
    assert squares["0", "1"].get("x") == squares["2", "1"].get("x")
    assert squares["0", "1"].get("y") == squares["0", "2"].get("y")
    darkest = max(squares.values(), key=lambda square: float(square.get("fill-opacity")))
    assert darkest is squares[str(known[0].given), str(known[0].true)]


def test_the_stop_line_is_where_labels_fall_below_it():
    found = made(1000)
    tree = parsed(charts.precision_picture(found))
    across, up = of_class(tree, "stop")
    points = [p.split(",") for p in of_class(tree, "single")[0].get("points").split()]
    x, y = np.array(points, dtype=float).T
    stop = float(up.get("x1"))
    line = float(across.get("y1"))
    assert (y[x < stop - 2] <= line + 0.1).all()  # y grows downwards
    assert (y[x > stop + 2] >= line - 0.1).all()


def test_a_dot_of_reliability_is_larger_with_more_labels():
    tree = parsed(charts.reliability_picture([Bin(0.2, 0.2, 900), Bin(0.9, 0.8, 4)]))
    many, few = of_class(tree, "dot")
    assert float(many.get("r")) > float(few.get("r"))
    assert few.find("title").text == "expected 90 %, observed 80 %, 4 labels"
