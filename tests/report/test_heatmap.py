from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from unswayed.report.heatmap import RIGHT_COLOUR, WRONG_COLOUR, heatmap

SVG = "{http://www.w3.org/2000/svg}"


def draw(matrix, names):
    return ElementTree.fromstring(heatmap(np.asarray(matrix, dtype=float), names, "a & b"))


def cells(tree):
    return [rect for rect in tree.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]


def test_is_an_image_that_loads_nothing_from_outside():
    tree = draw([[1, 0], [0.5, 0.5]], ["<b>", "x" * 40])
    assert tree.tag == f"{SVG}svg"
    assert not [e for e in tree.iter() if any("href" in key for key in e.attrib)]
    texts = [e.text for e in tree.iter(f"{SVG}text")]
    assert "a & b" in texts
    assert texts.count("<b>") == 2  # beside the rows and above the columns


def test_a_cell_is_where_its_class_and_its_label_are():
    tree = draw([[0.75, 0.25], [0, 1]], ["cat", "dog"])
    found = {cell.find(f"{SVG}title").text: cell for cell in cells(tree)}
    assert set(found) == {"cat → cat: 75.0 %", "cat → dog: 25.0 %", "dog → dog: 100.0 %"}
    wrong, right = found["cat → dog: 25.0 %"], found["dog → dog: 100.0 %"]
    assert (wrong.get("fill"), right.get("fill")) == (WRONG_COLOUR, RIGHT_COLOUR)
    assert float(wrong.get("fill-opacity")) == pytest.approx(0.5)
    assert wrong.get("x") == right.get("x")
    assert float(wrong.get("y")) < float(right.get("y"))


def test_a_hundred_classes_have_room():
    tree = draw(np.full((100, 100), 0.01), [f"class {k}" for k in range(100)])
    assert len(cells(tree)) == 10_000
    width, height = float(tree.get("width")), float(tree.get("height"))
    for cell in cells(tree):
        assert float(cell.get("x")) + float(cell.get("width")) <= width
        assert float(cell.get("y")) + float(cell.get("height")) <= height
    assert len(list(tree.iter(f"{SVG}text"))) < 100  # names of every so many-th class
