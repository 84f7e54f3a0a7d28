"""The grids of the paper, and those of this repository's own tables."""

from __future__ import annotations

import pytest

from reproduction import grid_file, grid_names
from unswayed import UsageError, methods
from unswayed.bench.grid import Grid
from unswayed.recipe import Recipe, shipped


@pytest.mark.parametrize("name", grid_names())
def test_every_grid_is_valid_described_and_not_shipped(name):
    assert Grid.load(grid_file(name)).description
    assert name not in shipped("grid")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table4", "table5", "table6", "table7"])
def test_what_the_papers_tables_share_is_the_same_training(name):
    first = {c.recipe.to_toml() for c in Grid.load(grid_file("table1")).only(["ctrr"])}
    again = {c.recipe.to_toml() for c in Grid.load(grid_file(name)).only(["ctrr"])}
    assert again
    assert again <= first


def test_the_official_grid_has_the_options_of_the_published_code():
    cells = Grid.load(grid_file("official-cifar10")).only(["ctrr-byol-gce", "sym 80"])
    sections = cells[0].recipe.sections
    assert [c.recipe.sections["noise"]["official_seed"] for c in cells] == ["2021", "2022", "2023"]
    assert (sections["loss"]["name"], sections["loss"]["q"]) == ("gce", 0.8)
    assert sections["regularizer"]["clamp"] == "coordinate"
    assert (sections["regularizer"]["weight"], sections["regularizer"]["tau"]) == (8.0, 0.8)
    byol = Recipe.load("official-byol", "data.name=cifar10").sections["framework"]
    assert sections["framework"] == byol


def test_the_digits_table_has_every_method_and_equal_epochs():
    grid = Grid.load(grid_file("digits-methods"))
    assert {row.key for row in grid.rows} == set(methods.names())
    assert len({cell.recipe.settings.epochs for cell in grid.cells}) == 1


def test_rows_of_the_protocol_differ_only_in_what_they_say():
    cells = Grid.load(grid_file("protocol"), seeds=1).cells
    for cell in cells:
        weak = cell.recipe.sections["views.weak"]
        strong = cell.row.key == "ce-strong-views"
        assert weak["name"] == ("strong" if strong else "padded_crop")
        if strong:  # what CTRR's contrast sees
            assert weak == cell.recipe.sections["views.strong"]
        settings = cell.recipe.settings
        assert settings.epochs == (180 if "three-times" in cell.row.key else 60)
        assert (settings.holdout, settings.evaluate_every) == (0.1, 1)
    assert len({cell.recipe.key() for cell in cells}) == len(cells)


def test_a_cell_says_what_papers_tune():
    cells = Grid.load(grid_file("table1")).only(["ctrr", "sym 80"])
    assert cells[0].settings == "λ 130, τ 0.4, lr 0.02"
    (gce, *_) = Grid.load(grid_file("table1")).only(["gce", "sym 80"])
    assert gce.settings == "q 0.7, lr 0.02"
    (apl, *_) = Grid.load(grid_file("table1")).only(["apl", "sym 80"])
    assert apl.settings == "alpha 1, beta 1, lr 0.02"


def test_what_a_row_sets_of_the_training_is_told_even_if_it_is_the_default():
    grid = Grid.load(grid_file("table1"))
    options = {row: grid.only([row])[0].options for row in ("ce", "forward")}
    assert options == {"ce": [], "forward": ["train.holdout=0.1"]}


def test_an_unknown_scale_names_those_there_are():
    with pytest.raises(UsageError, match="no scale 'cpus'; did you mean 'cpu'"):
        Grid.load(grid_file("lambda"), "cpus")
