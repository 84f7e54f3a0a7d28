from __future__ import annotations

import pytest

from unswayed.report.colours import OF_METHOD, OTHERS, colours_of


@pytest.mark.parametrize(
    ("label", "method"),
    [
        ("CE", "ce"),
        ("ce", "ce"),
        ("ce + ctrr (simsiam)", "ctrr"),
        ("CTRR+GCE", "ctrr gce"),
        ("gce", "gce"),
        ("gce, three times the epochs", "gce"),
        ("eq. 6", "ctrr"),
    ],
)
def test_a_method_has_one_colour_whatever_the_figure_calls_it(label, method):
    assert colours_of(["another", label])[label] == OF_METHOD[method]


def test_what_is_no_method_of_the_figures_has_another_colour():
    found = colours_of(["CE", "eq. 4", "MAE", "CTR (eq. 1)"])
    assert len(set(found.values())) == 4
    assert {found["eq. 4"], found["MAE"], found["CTR (eq. 1)"]} <= set(OTHERS)


def test_variants_of_a_method_differ_from_it_wherever_they_stand():
    found = colours_of(["ce", "ce, crops", "ctrr, own views only", "ctrr"])
    assert (found["ce"], found["ctrr"]) == (OF_METHOD["ce"], OF_METHOD["ctrr"])
    assert len(set(found.values())) == 4
    assert list(found) == ["ce", "ce, crops", "ctrr, own views only", "ctrr"]


def test_more_labels_than_colours_are_drawn_all_the_same():
    assert len(colours_of(map(str, range(9)))) == 9
