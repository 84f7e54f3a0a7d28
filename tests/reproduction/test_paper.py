"""The paper's grids: full-size recipes take real steps, and every table and figure is made."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import torch
from PIL import Image

from reproduction import grid_file, grid_names
from unswayed.bench.formats import FORMATS
from unswayed.bench.grid import Grid
from unswayed.bench.results import collect, save
from unswayed.build import assemble
from unswayed.data.clothing1m import CLASSES
from unswayed.recipe import Recipe
from unswayed.session import train

pytestmark = pytest.mark.slow
SMALL = ("lambda", "protocol", "tau", "tuning")
"""Grids that two cores can train."""

OURS = ("protocol", "tuning")
GRIDS = [
    name
    for name in grid_names()
    if "methods" not in name and not name.startswith("cifar") and name not in OURS
]
NEEDS_CIFAR = pytest.mark.skipif(
    not os.environ.get("UNSWAYED_DATA"), reason="needs the real CIFAR files"
)


def first_cells(name, scale="full"):
    """Return a cell of every row and, where columns have their own data, of every column."""
    cells = {}
    for cell in Grid.load(grid_file(name), scale).cells:
        data = cell.recipe.sections["data"]["name"]
        cells.setdefault((cell.row.key, data, cell.recipe.sections["noise"]["name"]), cell)
    return list(cells.values())


def take_steps(recipe, steps=2):
    """Train a few small batches with all else as it is, and return the losses."""
    overrides = ["train.batch_size=8", "train.threads=0"]
    trainer, _ = assemble(Recipe.from_dict(recipe.sections, *overrides, name=recipe.name))
    before = [p.detach().clone() for p in trainer.learner.parameters() if p.requires_grad]
    events = trainer.events()
    losses = [next(events).loss for _ in range(steps)]
    after = [p for p in trainer.learner.parameters() if p.requires_grad]
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    return losses


@NEEDS_CIFAR
@pytest.mark.parametrize("name", [name for name in GRIDS if name != "table3"])
def test_full_size_recipes_take_real_steps_on_cifar(name):
    for cell in first_cells(name):
        assert cell.recipe.settings.epochs == 550
        assert all(np.isfinite(take_steps(cell.recipe))), cell.title


def write_animals(root, count=40):
    rng = np.random.default_rng(0)
    for folder in ("training", "testing"):
        (root / folder).mkdir(parents=True)
        for number in range(count):
            image = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(image).save(root / folder / f"{number % 10}_{number}.jpg")


def write_clothes(root):
    rng = np.random.default_rng(0)
    parts = {"noisy_train": range(56), "clean_val": range(56, 70), "clean_test": range(70, 84)}
    for part, numbers in parts.items():
        lines = []
        for number in numbers:
            path = root / f"images/{number % 3}/{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)).save(path)
            lines.append(f"{path.relative_to(root)} {number % len(CLASSES)}\n")
        (root / "annotations").mkdir(exist_ok=True)
        (root / "annotations" / f"{part}.txt").write_text("".join(lines))


@pytest.mark.filterwarnings("ignore:.*not the official")
def test_full_size_recipes_take_real_steps_on_the_official_layouts(tmp_path):
    """Weights from ImageNet need a network: here they are random ones in a file."""
    import torchvision
    from safetensors.torch import save_file

    weights = tmp_path / "imagenet.safetensors"
    save_file(torchvision.models.resnet18(weights=None).state_dict(), weights)
    write_animals(tmp_path / "animal10n")
    write_clothes(tmp_path / "clothing1m")
    for cell in first_cells("table3"):
        data = cell.recipe.sections["data"]["name"]
        overrides = [f"data.root={tmp_path / data}"]
        if data == "clothing1m":
            overrides += [f"model.weights={weights}", "data.subset=42"]
        recipe = Recipe.from_dict(cell.recipe.sections, *overrides, name="table3")
        assert all(np.isfinite(take_steps(recipe))), cell.title


@NEEDS_CIFAR
@pytest.mark.parametrize("name", SMALL)
def test_a_short_cell_of_every_row_makes_a_table(name, tmp_path):
    scale = "" if name in OURS else "cpu"
    grid = Grid.load(grid_file(name), scale, seeds=1)
    for cell in first_cells(name, scale):
        overrides = ["train.epochs=2", "data.subset=400"]
        short = Recipe.from_dict(cell.recipe.sections, *overrides)
        made = train(short, run=tmp_path / cell.folder)
        # As if it had been trained for as long as the grid says.
        (made.path / "recipe.toml").write_text(cell.recipe.to_toml(), encoding="utf-8")
    results = collect(grid, tmp_path, f"unswayed bench {name}")
    files = save(results, tmp_path / "results", FORMATS)
    assert all(file.stat().st_size for file in files)
    assert json.loads(files[0].read_text(encoding="utf-8"))["runs"]
