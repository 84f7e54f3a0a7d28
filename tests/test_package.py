"""What the wheel holds: the package, and nothing that only reproduces the paper."""

from __future__ import annotations

import tomllib
from pathlib import Path

from unswayed.cli import VERBS
from unswayed.recipe import shipped

ROOT = Path(__file__).parents[1]


def test_the_package_ships_these_recipes_and_one_example_of_a_grid():
    assert set(shipped("grid")) == {"digits-frameworks"}
    assert set(shipped()) == {
        "cpu/auto",
        "cpu/cifar10",
        "cpu/cifar10-ctrr",
        "cpu/cifar10-posterior",
        "digits",
        "digits-ce",
        "official-byol",
        "paper-simsiam",
        "safe",
    }


def test_no_grid_figure_or_published_number_of_the_paper_is_in_the_package():
    files = [file for file in (ROOT / "src").rglob("*") if "__pycache__" not in file.parts]
    shipped_tables = {file.stem for file in files if file.suffix == ".toml"}
    outside = {file.stem for file in (ROOT / "reproduction").rglob("*.toml")}
    outside -= {"digits"}  # a recipe that ships under the same name
    assert {"table1", "parts", "official-cifar10", "claims", "cifar-final"} <= outside
    assert shipped_tables.isdisjoint(outside | {"published"})
    modules = {"figures", "figure", "claims", "pages", "reproduction"}
    assert modules.isdisjoint(file.stem for file in files)
    assert "figure" not in VERBS


def test_the_package_does_not_need_what_reproduces_the_paper():
    for file in (ROOT / "src").rglob("*.py"):
        assert "reproduction" not in file.read_text(encoding="utf-8"), file


def test_the_wheel_is_made_of_the_package_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/unswayed"]}
