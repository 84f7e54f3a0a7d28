"""What is written down of published tables is what was published."""

from __future__ import annotations

import pytest

from reproduction import PUBLISHED, grid_file
from unswayed.bench.grid import Grid
from unswayed.bench.published import Published

NAMES = sorted(file.stem for file in PUBLISHED.glob("*.toml"))

# Count, sum of means and sum of deviations of every table of the paper, added up from the paper.
SUMS = {
    "table1": (63, 4911.65, 37.99),
    "table2": (50, 2577.83, 35.50),
    "table3": (16, 1248.27, 3.56),
    "table4": (12, 964.26, 7.88),
    "table5": (15, 1317.86, 9.91),
    "table6": (8, 716.92, 3.88),
    "table7": (12, 1063.06, 4.83),
}
# Means and deviations over the seeds, to two places, as one gets them with a pocket calculator.
OFFICIAL = {
    ("official-cifar10", "oracle_best", "ctrr-byol"): {
        "clean": (94.33, 0.09),
        "sym 20": (93.32, 0.19),
        "sym 40": (92.22, 0.12),
        "sym 60": (89.17, 0.30),
        "sym 80": (87.55, 0.45),
        "sym 90": (84.13, 0.57),
        "asym 40": (89.46, 0.24),
    },
    ("official-cifar10", "last", "ctrr-byol"): {
        "clean": (94.23, 0.08),
        "sym 20": (93.19, 0.10),
        "sym 40": (92.07, 0.16),
        "sym 60": (88.69, 0.36),
        "sym 80": (87.42, 0.56),
        "sym 90": (83.90, 0.71),
        "asym 40": (89.00, 0.75),
    },
    ("official-cifar100", "oracle_best", "ctrr-byol"): {
        "clean": (76.04, 0.30),
        "sym 20": (71.80, 0.05),
        "sym 40": (68.42, 0.68),
        "sym 60": (63.06, 0.33),
        "sym 80": (55.31, 0.64),
        "asym 40": (55.26, 0.62),
    },
    ("official-cifar100", "last", "ctrr-byol"): {
        "clean": (75.87, 0.30),
        "sym 20": (71.55, 0.07),
        "sym 40": (68.25, 0.71),
        "sym 60": (62.74, 0.43),
        "sym 80": (55.10, 0.77),
        "asym 40": (54.53, 0.38),
    },
}
OFFICIAL_MEANS = {
    ("official-cifar10", "oracle_best", "ctrr-byol-gce"): [94.42, 93.68, 93.15, 91.67, 89.84],
    ("official-cifar10", "last", "ctrr-byol-gce"): [94.33, 93.52, 93.03, 91.49, 89.64],
    ("official-cifar100", "oracle_best", "ctrr-byol-gce"): [74.53, 72.87, 70.70, 64.04],
    ("official-cifar100", "last", "ctrr-byol-gce"): [74.29, 72.66, 70.37, 63.83],
}


def published(name):
    return Published.load(PUBLISHED / f"{name}.toml")


@pytest.mark.parametrize("name", SUMS)
def test_a_table_holds_every_number_of_the_paper(name):
    spreads = published(name).numbers["oracle_best"].values()
    count, means, deviations = SUMS[name]
    assert len(spreads) == count
    assert sum(100 * each.mean for each in spreads) == pytest.approx(means, abs=1e-6)
    assert sum(100 * each.deviation for each in spreads) == pytest.approx(deviations, abs=1e-6)


def test_numbers_stand_in_the_right_place():
    assert published("table1").get("oracle_best", "sl", "sym 90").mean == pytest.approx(0.5113)
    assert published("table2").get("oracle_best", "sl", "asym 40").mean == pytest.approx(0.4612)
    assert published("table2").get("oracle_best", "sln", "asym 40") is None
    assert published("table3").get("oracle_best", "ctrr", "Clothing1M").mean == pytest.approx(
        0.7271
    )
    assert published("table5").get("oracle_best", "ctrr-byol", "sym 80").deviation == pytest.approx(
        0.0059
    )


def test_tables_agree_where_the_paper_repeats_itself():
    for number in range(4, 8):
        table = published(f"table{number}")
        for column in table.columns:
            found = table.get("oracle_best", "ctrr", column)
            assert found == published("table1").get("oracle_best", "ctrr", column), column


@pytest.mark.parametrize(("name", "number", "row"), OFFICIAL)
def test_seeds_of_the_authors_have_the_known_spread(name, number, row):
    for column, (mean, deviation) in OFFICIAL[name, number, row].items():
        found = published(name).get(number, row, column)
        assert 100 * found.mean == pytest.approx(mean, abs=0.0051)
        assert 100 * found.deviation == pytest.approx(deviation, abs=0.0051)


@pytest.mark.parametrize(("name", "number", "row"), OFFICIAL_MEANS)
def test_seeds_of_the_authors_with_gce_have_the_known_means(name, number, row):
    table = published(name)
    found = [table.get(number, row, column) for column in table.columns]
    means = [100 * each.mean for each in found if each]
    assert means == pytest.approx(OFFICIAL_MEANS[name, number, row], abs=0.0051)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_a_cell_for_every_published_number_and_no_other(name):
    grid = Grid.load(grid_file(name))
    assert grid.published == published(name)
    cells = {(cell.row.key, cell.column) for cell in grid.cells}
    assert cells == {place for found in grid.published.numbers.values() for place in found}
