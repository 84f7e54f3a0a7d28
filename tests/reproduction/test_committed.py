"""What is committed of measured tables is what the code makes of the measured numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduction import cifar, claims, grid_file
from unswayed.bench.grid import Grid
from unswayed.bench.results import render

ROOT = Path(__file__).parents[2]
KNOWN = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "results").glob("*.json"))
}
TABLES = {name: found for name, found in KNOWN.items() if "grid" in found}
OF_PROTOCOL = ("protocol", "tuning", "lambda", "tau")


@pytest.mark.parametrize("name", TABLES)
def test_a_page_is_made_of_its_numbers(name):
    page = (ROOT / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert page == render(TABLES[name]), f"{name}.md: make it anew from {name}.json"


def test_the_cifar_page_is_made_of_its_numbers():
    page = (ROOT / "results" / "cifar.md").read_text(encoding="utf-8")
    assert page == cifar.page(KNOWN["cifar"]["runs"])


def test_the_claims_are_tested_on_the_committed_numbers():
    made = claims.page(dict(claims.tables(ROOT / "results")))
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == made, "make claims"


MADE_OF = {name: name.partition("-") for name in TABLES if name.partition("-")[0] in OF_PROTOCOL}


@pytest.mark.parametrize("name", MADE_OF)
def test_a_table_of_the_protocol_is_of_the_grid_as_it_is_now(name):
    """Rows and columns may still be missing. What is there must be of this grid."""
    (file, _, scale), found = MADE_OF[name], TABLES[name]
    grid = Grid.load(grid_file(file), scale)
    assert found["seeds"] == grid.seeds
    assert found["extends"] == grid.extends
    columns = {column["name"]: tuple(column["overrides"]) for column in found["columns"]}
    assert columns.items() <= grid.columns.items()
    options = {cell.row.key: cell.options for cell in reversed(grid.cells)}
    assert {m["key"]: m["options"] for m in found["methods"]}.items() <= options.items()
    cells = {(cell.row.key, cell.column, cell.seed) for cell in grid.cells}
    assert {(run["method"], run["column"], run["seed"]) for run in found["runs"]} <= cells
