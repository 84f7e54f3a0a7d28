from __future__ import annotations

import math

import pytest

from reproduction import grid_file
from reproduction.claims import (
    FIGURES,
    Claim,
    Finding,
    claims,
    figure_runs,
    findings,
    gate,
    page,
    verdict,
)
from unswayed.bench.grid import Grid, slug


def results(**numbers):
    """Runs by "method@column", a number for each seed."""
    return {
        "runs": [
            {"method": key.split("@")[0], "column": key.split("@")[1], "seed": seed, "last": value}
            for key, values in numbers.items()
            for seed, value in enumerate(values)
        ]
    }


def claim(better, *worse, **more):
    return Claim("It is so.", "table 9", "t", better, worse, **more)


def test_a_difference_is_paired_by_seed_with_a_t_interval():
    measured = results(**{"a@x": [0.9, 0.8, 0.7], "b@x": [0.88, 0.77, 0.66, 0.1]})
    (found,) = findings(claim("a @ x", "b @ x"), measured)
    assert (found.n, found.mean) == (3, pytest.approx(3.0))
    half = 4.302653 * 1.0 / math.sqrt(3)  # Student's t for two degrees of freedom, deviation 1
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-4)
    assert found.verdict == "holds"
    assert str(found) == "+3.0 [+0.5, +5.5] over b @ x, n = 3"


def test_a_star_is_the_mean_over_columns_that_a_seed_has_all_of():
    measured = results(**{"a@x": [0.9, 0.8], "a@y": [0.7], "b@x": [0.5, 0.5], "b@y": [0.5, 0.5]})
    (found,) = findings(claim("a @ *", "b @ *", columns=("x", "y")), measured)
    assert (found.n, found.mean) == (1, pytest.approx(30))
    assert found.verdict == "open"  # one seed says nothing of the spread


def test_a_gap_that_grows():
    measured = results(
        **{"a@x": [0.9, 0.9], "b@x": [0.8, 0.81], "a@y": [0.8, 0.8], "b@y": [0.5, 0.52]}
    )
    (found,) = findings(claim("a @ y", "b @ y", more_than=("a @ x", "b @ x")), measured)
    assert found.mean == pytest.approx(19.5)


def test_not_worse_is_a_claim_too():
    measured = results(**{"a@x": [0.9, 0.8, 0.7], "b@x": [0.902, 0.803, 0.701]})
    (found,) = findings(claim("a @ x", "b @ x", least=-1.0), measured)
    assert found.mean == pytest.approx(-0.2)
    assert found.verdict == "holds"
    (found,) = findings(claim("a @ x", "b @ x", least=1.0), measured)
    assert found.verdict == "does not hold"


def finding(low, high):
    return Finding("b", (low + high) / 2, low, high, 3)


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ([], "not measured"),
        ([(1, 2)], "holds"),
        ([(1, 2), (-1, 2)], "open"),
        ([(-2, -1)], "does not hold"),
        ([(1, 2), (-2, -1)], "holds only against some"),
        ([(-2, -1), (-1, 2)], "does not hold"),
        ([(-0.4, 0.5)], "no difference"),
        ([(-0.4, 0.5), (1, 2)], "open"),
    ],
)
def test_a_verdict_needs_all_rivals(intervals, words):
    assert verdict([finding(*each) for each in intervals]) == words


def test_every_claim_is_about_cells_that_its_grid_has():
    grids = {}
    for each in claims():
        if each.table.startswith(FIGURES):
            continue
        if each.table not in grids:
            name, _, scale = each.table.partition("-")
            grids[each.table] = Grid.load(grid_file(name), scale, seeds=1)
        grid = grids[each.table]
        keys = {row.key for row in grid.rows}
        assert set(each.columns) <= set(grid.columns)
        for side in (each.better, *each.worse, *(each.more_than or ())):
            method, _, column = (part.strip() for part in side.partition("@"))
            assert slug(method) in keys, side
            assert column == "*" or column in grid.columns, side
            assert (column == "*") <= bool(each.columns), side


def protocol(ctrr, ce, **more):
    """Results of the grid `protocol` with two methods at 60 % noise: (last, best) by seed."""
    runs = [
        {"method": method, "column": "sym 60", "seed": seed, "last": last, "oracle_best": best}
        for method, numbers in {"ctrr": ctrr, "ce": ce, **more}.items()
        for seed, (last, best) in enumerate(numbers)
    ]
    methods = [{"key": key, "label": key} for key in ("ce", "ctrr")]
    return {"protocol": {"runs": runs, "methods": methods, "columns": [{"name": "sym 60"}]}}


ROBUST = [(0.80, 0.81), (0.82, 0.82), (0.81, 0.82)]
FALLEN = [(0.50, 0.70), (0.53, 0.71), (0.51, 0.70)]


def test_the_page_has_a_row_for_every_claim_measured_or_not():
    text = page(protocol(ROBUST, FALLEN))
    summary, details = text.split("## Every comparison")
    rows = summary.partition("|  | the paper says")[2]
    assert rows.count("\n| ") == len(claims()) + 1
    assert details.count("| ce @ sym 60 |") == 1
    assert "| ce @ sym 60 | +29.7 " in details
    assert "over ce @ sym 60, n = 3 | **holds** |" in summary
    assert text.count("**not measured**") > 10


def test_the_numbers_of_users_and_of_the_paper_stand_side_by_side():
    text = page(protocol(ROBUST, [(0.50, 0.90), (0.53, 0.90), (0.51, 0.91)]))
    assert "| **holds** | – | does not hold |" in text


def test_intervals_hold_together():
    measured = results(**{"a@x": [0.9, 0.8, 0.7], "b@x": [0.88, 0.77, 0.66]})
    (alone,) = findings(claim("a @ x", "b @ x"), measured)
    (one_of_ten,) = findings(claim("a @ x", "b @ x"), measured, tests=10)
    assert one_of_ten.high - one_of_ten.mean == pytest.approx(
        (alone.high - alone.mean) * 14.0890 / 4.3027, rel=1e-3
    )  # Student's t for two degrees of freedom, at 99.75 and at 97.5 %
    assert one_of_ten.verdict == "open"


def test_robustness_is_not_tested_where_cross_entropy_does_not_fall():
    text = page(protocol(ROBUST, [(0.50, 0.54), (0.53, 0.56), (0.51, 0.56)]))
    assert "| Cross entropy falls by only 4.0 points at sym 60. | – | **not tested here** |" in text
    assert "**holds**" not in text


def test_a_claim_that_is_not_about_robustness_needs_no_fall():
    measured = results(**{"a@x": [0.9, 0.8], "ce@x": [0.8, 0.7]})["runs"]
    runs = {"runs": [{**run, "oracle_best": run["last"]} for run in measured]}
    assert gate(claim("a @ x", "ce @ x"), runs)
    assert not gate(claim("a @ x", "ce @ x", robustness=False), runs)


def test_robustness_is_not_tested_without_cross_entropy():
    runs = results(**{"a@x": [0.9, 0.8], "b@x": [0.8, 0.7]})
    assert "Cross entropy was not evaluated" in gate(claim("a @ x", "b @ x"), runs)
    assert not gate(claim("a @ y", "b @ y"), runs)  # nothing is trained there: "not measured"


def test_a_number_stands_beside_its_own_rival_where_another_lacks_it():
    tables = protocol(ROBUST, FALLEN, gce=[(0.60, 0.70), (0.61, 0.71), (0.62, 0.70)])
    for run in tables["protocol"]["runs"]:
        if run["method"] == "gce":
            del run["oracle_best"]
    details = page(tables).split("## Every comparison")[1]
    gce, ce = (
        next(line for line in details.splitlines() if f"| {rival} @ sym 60 |" in line).split("|")
        for rival in ("gce", "ce")
    )
    assert gce[5].strip() == "–"
    assert ce[5].strip().startswith("+11.3")  # 0.8167 - 0.7033, the best epochs


def test_figures_are_asked_about_their_ends():
    curves = {
        "sym 80": {"CE": [[[0.9, 0, 0.1], [0.3, 0.6, 0.5]]], "CTR (eq. 1)": [[[0.1, 0, 0.7]]]}
    }
    ce, ctr = figure_runs({"figure": "memorisation", "curves": curves})["runs"]
    assert (ce["method"], ce["column"], ce["memorised"], ce["last"]) == ("ce", "sym 80", 0.3, 0.5)
    assert (ctr["method"], ctr["memorised"]) == ("ctr-eq.-1", 0.1)
    ends = {"eq. 4": [[{}, {"wrong_inner": 0.4, "wrong_log": 0.1}]]}
    (run,) = figure_runs({"figure": "gradient-share", "curves": ends})["runs"]
    assert (run["method"], run["wrong pull"]) == ("eq.-4", 0.4)
    names = {side for each in claims() if each.table.startswith(FIGURES) for side in each.worse}
    assert names == {"eq.-6 @ end"}
