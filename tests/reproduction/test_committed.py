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


@pytest.mark.parametrize("name", [name for name in TABLES if name.endswith("-cpu")])
def test_a_table_of_the_paper_is_of_the_grid_as_it_is_now(name):
    grid, found = Grid.load(grid_file(name.removesuffix("-cpu")), "cpu"), TABLES[name]
    assert found["seeds"] == grid.seeds
    assert found["extends"] == grid.extends
    assert found["command"] == (
        f"unswayed bench reproduction/grids/{name.removesuffix('-cpu')}.toml --scale cpu "
        f"--seeds {grid.seeds}"
    )
    assert {
        column["name"]: tuple(column["overrides"]) for column in found["columns"]
    } == grid.columns
    options = {method["key"]: method["options"] for method in found["methods"]}
    assert options == {cell.row.key: cell.options for cell in reversed(grid.cells)}
    assert {(run["method"], run["column"], run["seed"]) for run in found["runs"]} == {
        (cell.row.key, cell.column, cell.seed) for cell in grid.cells
    }
