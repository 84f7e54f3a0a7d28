from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unswayed import UsageError
from unswayed.data.inspect import inspect
from unswayed.plan import (
    MANY,
    MOST,
    Candidate,
    Material,
    Measured,
    batch_size,
    candidates_for,
    choose,
    enough_epochs,
    make_plan,
)

PHOTOS = Material("folder", Path("photos"), 3000, 0, 10, 3, 400, (Path("photos/a/1.jpg"),))
LEAST = 12
SLOWER = [
    Measured(Candidate(side, 16), epoch=side / 16, reading=10.0) for side in (16, 32, 48, 64, 96)
]


def test_the_best_candidate_that_gets_enough_epochs_is_chosen():
    for number, each in enumerate(SLOWER):
        seconds = 10 + (LEAST + 1) * each.epoch  # and a last look at all images
        assert choose(SLOWER, seconds, LEAST, MOST) == (each, LEAST)
        before = choose(SLOWER, seconds - 1, LEAST, MOST)
        assert before is None if number == 0 else before.measured == SLOWER[number - 1]


def test_time_beyond_the_most_useful_epochs_is_not_used():
    assert choose(SLOWER, 1e6, LEAST, MOST) == (SLOWER[-1], MOST)


def test_images_are_hardly_enlarged():
    def sides(side):
        return {each.side for each in candidates_for(replace(PHOTOS, side=side))}

    assert sides(400) == {16, 32, 48, 64, 96}
    assert sides(28) == {16, 32}
    assert sides(8) == {16}


def test_many_images_are_worth_a_wider_network():
    assert {each.width for each in candidates_for(PHOTOS)} == {16}
    assert {each.width for each in candidates_for(replace(PHOTOS, images=MANY))} == {16, 32}


@pytest.mark.parametrize(("images", "epochs"), [(50_000, 9), (3000, 18), (300, MOST)])
def test_few_images_need_more_epochs(images, epochs):
    assert enough_epochs(images, batch_size(images)) == epochs


def test_what_the_user_chose_is_left_alone():
    sizes = candidates_for(PHOTOS, ["data.size=40"])
    assert {each.side for each in sizes} == {40}
    assert len(candidates_for(PHOTOS, ["data.size=40", "model.width=8"])) == 1
    assert len(candidates_for(PHOTOS, ["data.size=40", "model.name=resnet18"])) == 1


def test_arrays_keep_their_size():
    arrays = Material("npz", Path("mine.npz"), 50_000, 0, 10, 3, 32)
    assert {each.side for each in candidates_for(arrays)} == {32}


@pytest.mark.parametrize(("images", "size"), [(20, 4), (300, 32), (3000, 64), (50_000, 512)])
def test_batches_grow_with_the_data(images, size):
    assert batch_size(images) == size


def folder_of(path, classes=("a", "b"), count=30, side=12):
    rng = np.random.default_rng(0)
    for number, name in enumerate(classes):
        (path / name).mkdir(parents=True)
        for image in range(count):
            pixels = rng.integers(0, 128, (side, side)) + 100 * number
            Image.fromarray(pixels.astype(np.uint8)).save(path / name / f"{image}.png")
    return path


def test_a_plan_is_measured_on_real_files_and_says_what_it_will_do(tmp_path):
    material = Material.of_findings(inspect(folder_of(tmp_path / "photos")))
    assert (material.images, material.classes, material.channels, material.side) == (60, 2, 1, 12)
    plan = make_plan(material, 1.0, ["train.epochs=3", "train.threads=1"])
    assert plan.recipe.sections["data"]["mode"] == "gray"
    assert plan.recipe.sections["views.weak"]["flip"] == 0  # gray images may be characters
    assert plan.recipe.settings.epochs == 3
    said = str(plan)
    for words in ("60 images in 2 classes", "10 % of them held out", "at 16 pixels", "3 epochs"):
        assert words in said
    assert f"1 of {os.cpu_count()} cores" in said or os.cpu_count() == 1


def test_too_little_time_says_how_much_is_needed(tmp_path):
    material = Material.of_findings(inspect(folder_of(tmp_path / "photos")))
    many = replace(material, images=100_000_000)
    with pytest.raises(
        UsageError, match=r"10 minutes are too short: 100,000,000 images need about"
    ):
        make_plan(many, 10.0, ["train.threads=1"])


def test_one_class_and_unreadable_images_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"one class only, 'a': nothing to tell apart"):
        Material.of_findings(inspect(folder_of(tmp_path / "one", classes=("a",))))
    for name in ("a", "b"):
        (tmp_path / "bad" / name).mkdir(parents=True)
        (tmp_path / "bad" / name / "1.png").write_bytes(b"no image")
    with pytest.raises(UsageError, match=r"none of the 2 images in .* is readable"):
        Material.of_findings(inspect(tmp_path / "bad"))


def test_a_few_images_are_refused():
    with pytest.raises(UsageError, match="5 images are too few"):
        make_plan(Material("npz", Path("x.npz"), 5, 0, 2, 1, 8), 10.0)


def test_candidates_are_measured_from_the_cheapest_on():
    costs = [each.side**2 * each.width for each in candidates_for(replace(PHOTOS, images=MANY))]
    assert costs == sorted(costs)
