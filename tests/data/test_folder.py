from __future__ import annotations

import os
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from pictures import class_folders, picture

from unswayed import UsageError
from unswayed.data import DATASETS


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))


def load(root, **options):
    return DATASETS.build("folder", path=str(root), **{"size": 16, **options})


def test_sub_folders_are_classes_and_paths_are_ids(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"dog": 2, "cat": 3})
    train, test = load(root)
    assert test is None
    assert train.classes == ("cat", "dog")
    assert train.ids == ("cat/000.png", "cat/001.png", "cat/002.png", "dog/000.png", "dog/001.png")
    assert train.given.tolist() == [0, 0, 0, 1, 1]
    assert tuple(train.images.shape) == (5, 3, 16, 16)


@pytest.mark.parametrize("name", ["test", "val"])
def test_splits_are_recognised(tmp_path, rng, name):
    class_folders(tmp_path / "d" / "train", rng, {"a": 2, "b": 2})
    class_folders(tmp_path / "d" / name, rng, {"a": 1, "b": 1})
    odd = nullcontext() if name == "test" else pytest.warns(UserWarning, match="val is tested on")
    with odd:
        train, test = load(tmp_path / "d")
    assert train.ids[0] == "train/a/000.png"
    assert test.ids == (f"{name}/a/000.png", f"{name}/b/000.png")


def test_ids_stay_relative_to_the_given_folder_and_what_is_left_out_is_said(tmp_path, rng):
    root = tmp_path / "d"
    for split in ("train", "validation", "test"):
        class_folders(root / "deep" / split, rng, {"a": 1, "b": 2})
    with pytest.warns(UserWarning, match="deep") as said:
        train, test = load(root)
    assert train.ids == ("deep/train/a/000.png", "deep/train/b/000.png", "deep/train/b/001.png")
    assert [name.split("/")[1] for name in test.ids] == ["test"] * 3
    words = " ".join(str(each.message) for each in said)
    assert "the classes lie in deep/train" in words
    assert "deep/validation is not used (3 images)" in words


def test_several_folders_can_be_trained_on(tmp_path, rng):
    for split in ("train", "validation", "test"):
        class_folders(tmp_path / "d" / split, rng, {"a": 1, "b": 1})
    train, test = load(tmp_path / "d", train_folders=("train", "validation"))
    assert train.ids[::2] == ("train/a/000.png", "validation/a/000.png")
    assert train.given.tolist() == [0, 1, 0, 1]
    assert test.ids == ("test/a/000.png", "test/b/000.png")


def test_images_may_lie_deeper_and_other_files_are_passed_over(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 1, "b": 1})
    (root / "a" / "more").mkdir()
    picture(rng).save(root / "a" / "more" / "x.JPG", "JPEG")
    for name in ("notes.txt", ".hidden.png", "Thumbs.db", "noending"):
        (root / "a" / name).write_text("nothing")
    (root / ".git").mkdir()
    (root / "readme.md").write_text("x")
    assert load(root).train.ids == ("a/000.png", "a/more/x.JPG", "b/000.png")


def test_an_empty_class_is_left_out_with_a_word(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 1, "b": 1, "empty": 0})
    with pytest.warns(UserWarning, match="empty holds no images"):
        assert load(root).train.classes == ("a", "b")


def test_unreadable_files_are_skipped_and_listed(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 150, "b": 60})
    (root / "a" / "007.png").write_bytes(b"")
    (root / "b" / "003.png").write_bytes(b"not an image")
    train = load(root).train
    assert len(train) == 208
    assert set(train.skipped) == {"a/007.png", "b/003.png"}
    assert "a/007.png" not in train.ids
    assert "not a readable image" in train.skipped["b/003.png"]


def test_too_many_unreadable_files_stop_with_the_list(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 10, "b": 10})
    (root / "a" / "007.png").write_bytes(b"")
    with pytest.raises(UsageError, match=r"1 of 20 images cannot be read(.|\n)*007\.png"):
        load(root)
    assert len(load(root, max_bad=0.1).train) == 19


def test_a_link_that_leaves_the_folder_is_an_error_unless_allowed(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 1, "b": 1})
    picture(rng).save(tmp_path / "outside.png")
    (root / "a" / "link.png").symlink_to(tmp_path / "outside.png")
    (root / "b" / "inside.png").symlink_to(root / "b" / "000.png")
    with pytest.raises(UsageError, match=r"link\.png leaves the data folder"):
        load(root)
    assert len(load(root, links=True).train) == 4


def test_a_class_that_is_a_link_is_no_way_out_either(tmp_path, rng):
    class_folders(tmp_path / "outside", rng, {"a": 2, "b": 2})
    root = class_folders(tmp_path / "inside", rng, {"b": 2})
    (root / "a").symlink_to(tmp_path / "outside" / "a")
    with pytest.raises(UsageError, match="leaves the data folder"):
        load(root)
    assert len(load(root, links=True).train) == 4


def test_a_link_to_a_folder_above_does_not_hang(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 1, "b": 1})
    (root / "a" / "loop").symlink_to(root)
    with pytest.raises(UsageError, match="a folder that holds it"):
        load(root)


def test_names_that_are_no_utf8_are_shown_with_codes(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"a": 1, "b": 1})
    name = os.path.join(os.fsencode(root / "a"), b"caf\xe9.png")  # noqa: PTH118
    picture(rng).save(root / "x.png")
    os.rename(root / "x.png", name)  # noqa: PTH104
    assert "a/caf\\xe9.png" in load(root).train.ids


@pytest.mark.parametrize("make", ["nothing", "empty", "flat"])
def test_a_folder_without_classes_says_what_is_expected(tmp_path, rng, make):
    root = tmp_path / "d"
    if make != "nothing":
        root.mkdir()
    if make == "flat":
        picture(rng).save(root / "a.png")
    with pytest.raises(UsageError, match=r"no folder|expected"):
        load(root)


def test_test_classes_must_be_known(tmp_path, rng):
    class_folders(tmp_path / "d" / "train", rng, {"a": 2, "b": 2})
    class_folders(tmp_path / "d" / "test", rng, {"a": 1, "zebra": 1})
    with pytest.raises(UsageError, match="zebra"):
        load(tmp_path / "d")


def test_numbers_sort_as_numbers(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"10": 1, "9": 1, "2": 1})
    assert load(root).train.classes == ("2", "9", "10")


@pytest.mark.parametrize(("side", "expected"), [(20, 32), (64, 64), (100, 96), (500, 96)])
def test_the_size_is_chosen_by_the_images(tmp_path, rng, side, expected):
    for name in "ab":
        (tmp_path / "d" / name).mkdir(parents=True)
        picture(rng, (side, side + 5)).save(tmp_path / "d" / name / "x.png")
    assert load(tmp_path / "d", size=0).train.image_size == (expected, expected)


@pytest.mark.parametrize("cache", ["memory", "disk", "stream"])
@pytest.mark.parametrize("mode", ["rgb", "gray"])
def test_every_cache_gives_the_same_pixels(tmp_path, rng, cache, mode):
    root = class_folders(tmp_path / "d", rng, {"a": 4, "b": 3}, ".jpg")
    expected = load(root, cache="memory", mode=mode).train
    found = load(root, cache=cache, mode=mode).train
    rows = torch.tensor([5, 0, 0, 3])
    assert torch.equal(found.images[rows], expected.images[rows])
    assert found.channel_statistics() == expected.channel_statistics()
    if cache != "memory":
        found.images.prefetch(rows)
        assert torch.equal(found.images[torch.tensor([1])], expected.images[[1]])


def test_the_same_run_on_every_cache(tmp_path, rng):
    import unswayed

    root = class_folders(tmp_path / "d", rng, {"a": 40, "b": 40})
    runs = []
    for cache in ("memory", "disk", "stream"):
        words = ("data.name=folder", f"data.path={root}", f"data.cache={cache}", "data.size=8")
        rest = ("train.epochs=1", "train.batch_size=16", "model.width=4", "train.threads=1")
        runs.append(unswayed.train("digits", *words, *rest, run=tmp_path / cache))
    losses = [run.records().loss.numpy() for run in runs]
    assert np.array_equal(losses[0], losses[1], equal_nan=True)
    assert np.array_equal(losses[0], losses[2], equal_nan=True)
