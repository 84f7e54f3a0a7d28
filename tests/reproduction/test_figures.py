"""Every figure on tiny digits, from the command line; and what Grad-CAM computes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from reproduction import grid_file, recipe_file
from reproduction.figure import main
from reproduction.figures import NAMES, ONE_SEED, figure
from reproduction.figures.gradcam import gradcam, last_map
from unswayed import UsageError
from unswayed.bench.grid import Grid
from unswayed.learners import Classifier
from unswayed.models import Backbone
from unswayed.models.fast import FastNet
from unswayed.recipe import Recipe
from unswayed.session import train

SMALL = [
    str(recipe_file("digits").resolve()),
    "model.width=4",
    "train.epochs=2",
    "train.threads=1",
    "train.batch_size=256",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "sweeps"])
def test_a_figure_is_measured_drawn_and_not_trained_again(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduction.figures.representations.MOST", 100)
    words = [name, *SMALL, *([] if name in ONE_SEED else ["--seeds", "1"])]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{name}.json\n{name}.png\n"
    first = Path(f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(first)["figure"] == name
    assert Path(f"{name}.png").read_bytes().startswith(b"\x89PNG")
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json*")}
    assert before
    assert main([*words, "--save", "again"]) == 0
    assert Path(f"again/{name}.json").read_text(encoding="utf-8") == first
    assert before == {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json*")}


@pytest.mark.slow
def test_what_a_grid_has_trained_is_not_trained_again_for_a_figure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduction.figures.representations.MOST", 100)
    first = ["representations", *SMALL]
    assert main(first) == 0
    Path("runs/figure-representations").rename("runs/a-grid")
    for recipe in Path("runs").rglob("recipe.toml"):
        text = recipe.read_text(encoding="utf-8")
        assert "threads = 1" in text
        recipe.write_text(text.replace("threads = 1", "threads = 2"), encoding="utf-8")
    assert main(first) == 0
    assert not Path("runs/figure-representations").exists()


def test_sweeps_are_drawn_from_finished_grids(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweeps"]) == 2
    assert main(["sweeps", "digits"]) == 2
    assert "takes no recipe" in capsys.readouterr().err
    assert main(["sweeps", "--seeds", "2"]) == 2
    assert "--seeds is not for sweeps" in capsys.readouterr().err
    for name in ("lambda", "tau"):
        as_if_trained(Grid.load(grid_file(name), "cpu"), columns=1)
    assert main(["sweeps"]) == 0
    measured = json.loads(Path("sweeps.json").read_text(encoding="utf-8"))
    assert measured["scale"] == "cpu"
    assert len(measured["sweeps"]["λ"]["values"]["0"]) == 1
    left, right = figure("sweeps").draw(measured).axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["0"]
    assert (left.get_xlabel(), right.get_xlabel()) == ("λ", "τ")


def test_a_figure_can_be_drawn_again_from_its_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["information", "--redraw"]) == 2
    assert "leave out --redraw" in capsys.readouterr().err
    bits = {label: {"true": [1.0], "given": [0.5], "wrong": [0.2]} for label in ("CE", "CTRR")}
    Path("information.json").write_text(json.dumps({"figure": "information", "bits": bits}))
    before = Path("information.json").read_bytes()
    assert main(["information", "--redraw"]) == 0
    assert Path("information.json").read_bytes() == before
    assert Path("information.png").stat().st_size > 1000


def test_the_scale_is_drawn_of_which_the_larger_share_is_trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("lambda", "tau"):
        grids = {scale: Grid.load(grid_file(name), scale) for scale in ("cpu", "full")}
        as_if_trained(grids["cpu"], columns=len(grids["cpu"].columns) - 1)
        as_if_trained(grids["full"], columns=len(grids["full"].columns))
    assert main(["sweeps"]) == 0
    assert json.loads(Path("sweeps.json").read_text(encoding="utf-8"))["scale"] == "full"


def as_if_trained(grid, columns):
    """Put the run of a short training into the first cell of each of so many columns."""
    source = Path("short")
    if not source.exists():
        train(Recipe.load("digits", "train.epochs=1", "model.width=4"), run=source)
    for column in list(grid.columns)[:columns]:
        cell = next(cell for cell in grid.cells if cell.column == column)
        place = Path("runs") / grid.name / cell.folder
        shutil.copytree(source, place)
        (place / "recipe.toml").write_text(cell.recipe.to_toml(), encoding="utf-8")


def test_data_without_test_images_make_no_figure_of_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    zeros = np.zeros((40, 8, 8), dtype=np.uint8)
    np.savez("images.npz", train_x=zeros, train_y=np.arange(40) % 10)
    for name in ("gradcam", "memorisation"):
        assert main([name, *SMALL, "data.name=npz", "data.path=images.npz"]) == 2
        assert "these data have none" in capsys.readouterr().err
    assert not Path("runs").exists()


@pytest.mark.slow
def test_another_recipe_goes_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["information", *SMALL, "--seeds", "1"]
    assert main(words) == 0
    assert main([*words, "noise.rate=0.2"]) == 0
    assert len(list(Path("runs/figure-information").iterdir())) == 4


def test_a_place_that_cannot_be_written_to_is_found_out_before_training(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(["information", *SMALL, "--save", "file/there"]) == 2
    assert "file/there cannot be made" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_labels_that_are_all_right_make_no_figure_of_wrong_ones(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("information", "representations", "gradcam", "gradient-share"):
        assert main([name, "paper-simsiam", "data.name=digits"]) == 2
        assert "add for example noise.name=symmetric" in capsys.readouterr().err
    assert main(["memorisation", "digits-ce"]) == 2
    assert main(["memorisation", "--seeds", "0"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_named(capsys):
    with pytest.raises(UsageError, match="did you mean 'gradcam'"):
        figure("gradcams")


class Quarter(Backbone):
    """Features are the means of two maps: the image itself, and its negative."""

    feature_dim = 2

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1, bias=False)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([1.0, -1.0]).view(2, 1, 1, 1))

    def forward(self, x):
        return self.conv(x).mean(dim=(2, 3))


def test_gradcam_shows_where_the_evidence_is():
    net = Classifier(Quarter(), 2, [0.0], [1.0]).eval()
    with torch.no_grad():
        net.head.weight.copy_(torch.eye(2))
        net.head.bias.zero_()
    image = torch.zeros(1, 1, 8, 8)
    image[:, :, :4, :4] = 1
    layer = last_map(net, image)
    assert layer is net.backbone.conv
    seen = gradcam(net, image.repeat(2, 1, 1, 1), torch.tensor([0, 1]), layer)
    assert torch.equal(seen[0], image[0, 0])  # class 0 is what is bright
    assert torch.equal(seen[1], torch.zeros(8, 8))  # nothing is evidence for class 1


def test_a_map_is_taken_where_it_is_activated():
    backbone = FastNet(3, whiten=False, width=2)
    fast = Classifier(backbone, 2, [0.0] * 3, [1.0] * 3).eval()
    assert last_map(fast, torch.zeros(1, 3, 32, 32)) is fast.backbone.pairs[1]  # the third has 3×3


def test_maps_that_are_too_small_are_refused():
    net = Classifier(Quarter(), 2, [0.0], [1.0])
    with pytest.raises(UsageError, match="no map with 4×4"):
        last_map(net, torch.zeros(1, 1, 3, 3))
