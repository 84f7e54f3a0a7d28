from __future__ import annotations

from xml.etree import ElementTree

import pytest

from unswayed.report.chart import PANEL_HEIGHT, TOP, Line, Panel, chart

SVG = "{http://www.w3.org/2000/svg}"


def draw(*lines):
    return ElementTree.fromstring(chart([Panel("accuracy <b>", lines)], "a & b"))


def test_is_an_image_that_loads_nothing_from_outside():
    tree = draw(Line("x<y", [[0.1, 0.9]]))
    assert tree.tag == f"{SVG}svg"
    assert not [e for e in tree.iter() if any("href" in key for key in e.attrib)]
    texts = [e.text for e in tree.iter(f"{SVG}text")]
    assert "a & b" in texts
    assert "x<y" in texts


def test_a_curve_goes_where_its_numbers_are():
    (curve,) = draw(Line("x", [[0.0, 0.25, 1.0]])).iter(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in curve.get("points").split()]
    expected = [TOP + PANEL_HEIGHT * (1 - share) for share in (0, 0.25, 1)]
    assert heights == pytest.approx(expected, abs=0.06)


def test_several_seeds_make_a_mean_and_a_band():
    line = Line("x", [[0.2, 0.4], [0.4, 0.8]])
    assert line.points() == [(1, 0.2, pytest.approx(0.3), 0.4), (2, 0.4, pytest.approx(0.6), 0.8)]
    assert len(list(draw(line).iter(f"{SVG}polygon"))) == 1


def test_epochs_without_a_value_are_passed_over():
    assert [p[0] for p in Line("x", [[None, 0.4, None, 0.5]]).points()] == [2, 4]


def test_nothing_to_draw_is_still_an_image():
    assert draw(Line("x", [[]])).tag == f"{SVG}svg"
