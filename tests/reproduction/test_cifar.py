"""The study of noisy CIFAR-10: its grids, and what is made of their runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from reproduction import cifar, grid_file
from unswayed import UsageError
from unswayed.bench.grid import Grid
from unswayed.session import train

SAVED = Path(__file__).parents[2] / "results" / "cifar.json"


@pytest.mark.parametrize("which", cifar.GRIDS)
def test_every_cell_is_a_recipe_of_its_own(which):
    cells = Grid.load(grid_file(which), seeds=2).cells
    places = [cifar.place_of(which, cell) for cell in cells]
    assert len({place["name"] for place in places}) == len(cells)
    assert len({cell.recipe.key() for cell in cells}) == len(cells)
    for cell, place in zip(cells, places, strict=True):
        recipe = cell.recipe
        assert recipe.settings.budget == f"{place['budget']} PFLOP"
        assert recipe.settings.holdout == 0
        assert recipe.sections["model"]["width"] == cifar.LADDER[place["budget"]]
        noise = recipe.sections["noise"]
        assert f"{noise['name'][: -len('metric')]}{round(100 * noise['rate'])}" == place["noise"]
        assert noise.get("inclusive", True)
        assert noise["official_seed"] == "2021"


def test_equal_trainings_of_two_grids_have_equal_names_and_no_others():
    keys: dict[str, set[str]] = {}
    for which in cifar.GRIDS:
        for cell in Grid.load(grid_file(which), seeds=1).cells:
            keys.setdefault(cifar.place_of(which, cell)["name"], set()).add(cell.recipe.key())
    assert all(len(found) == 1 for found in keys.values())
    assert len(set.union(*keys.values())) == len(keys)


def test_every_saved_training_is_a_cell_of_a_grid():
    names = {
        cifar.place_of(which, cell)["name"]
        for which in cifar.GRIDS
        for cell in Grid.load(grid_file(which), seeds=2).cells
    }
    saved = cifar.load(SAVED)["runs"]
    assert len(saved) == 70
    assert {each["name"] for each in saved} <= names


def test_runs_of_another_recipe_are_refused(tmp_path, tiny):
    cell = Grid.load(grid_file("cifar-final")).cells[0]
    train(tiny, run=tmp_path / "cifar-final" / cell.folder)
    with pytest.raises(UsageError, match=r"another recipe .*data\.name"):
        list(cifar.collect(tmp_path))


@pytest.mark.slow
def test_a_finished_run_replaces_its_entry_and_the_others_stay(tmp_path, tiny):
    results, runs = tmp_path / "results", tmp_path / "runs"
    results.mkdir()
    shutil.copy(SAVED, results)
    arguments = ["--runs", str(runs), "--save", str(results)]
    assert cifar.main(arguments) == 0
    assert (results / "cifar.json").read_bytes() == SAVED.read_bytes()
    assert (results / "cifar.md").read_bytes() == SAVED.with_suffix(".md").read_bytes()
    cell = Grid.load(grid_file("cifar-final")).only(["gce", "sym80"])[0]
    made = train(tiny, run=runs / "cifar-final" / cell.folder)
    (made.path / "recipe.toml").write_text(cell.recipe.to_toml(), encoding="utf-8")
    assert cifar.main(arguments) == 0
    before, after = (
        {each["name"]: each for each in json.loads(file.read_text(encoding="utf-8"))["runs"]}
        for file in (SAVED, results / "cifar.json")
    )
    assert list(after) == sorted(before)
    changed = [name for name in after if after[name] != before[name]]
    assert changed == ["sym80-gce-0.2-seed0"]
    assert after[changed[0]]["summary"]["epochs"] == made.summary.epochs
