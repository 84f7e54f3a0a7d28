from __future__ import annotations

import warnings

import pytest
import torch
from PIL import Image

from unswayed import UsageError
from unswayed.data import DATASETS
from unswayed.data.clothing1m import CLASSES

PARTS = {"noisy_train": range(28), "clean_val": range(28, 35), "clean_test": range(35, 49)}


def key(number):
    """Return a path as the lists write it, with a comma."""
    return f"images/{number % 3}/{number:02d}/142929645{number},2096860000.jpg"


def write_images(folder):
    for number in range(49):
        path = folder / key(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30, 40), (5 * number, 0, 0)).save(path, quality=95)


def write_lists(folder, prefix="images/"):
    """Write the official lists; `prefix` is how the paths begin."""
    folder.mkdir(parents=True, exist_ok=True)

    def name(number):
        return prefix + key(number).removeprefix("images/")

    for part, numbers in PARTS.items():
        lines = "".join(f"{name(number)}\n" for number in numbers)
        (folder / f"{part}_key_list.txt").write_text(lines)
    noisy = "".join(f"{name(n)} {n % 14}\n" for n in (*PARTS["noisy_train"], 40))
    clean = "".join(f"{name(n)} {(n + 1) % 14}\n" for n in range(20, 49))
    (folder / "noisy_label_kv.txt").write_text(noisy)
    (folder / "clean_label_kv.txt").write_text(clean)


def write_pairs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part, numbers in PARTS.items():
        shift = 0 if part == "noisy_train" else 1
        lines = "".join(f"{key(n)} {(n + shift) % 14}\n" for n in numbers)
        (folder / f"{part}.txt").write_text(lines)


def build(root, **options):
    """Build without the warnings about few images, which one test is about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not the official")
        return DATASETS.build("clothing1m", root=str(root), **{"size": 16, **options})


@pytest.mark.parametrize("variant", ["flat", "label", "annotations", "pairs", "inside", "short"])
def test_every_arrangement_is_found(tmp_path, variant):
    home = tmp_path / "clothing1m" if variant == "inside" else tmp_path
    write_images(home)
    if variant == "pairs":
        write_pairs(home / "annotations")
    else:
        lists = {"label": "label", "annotations": "annotations"}.get(variant, ".")
        write_lists(home / lists, prefix="" if variant == "short" else "images/")
    check(*build(tmp_path))


@pytest.mark.parametrize("prefix", ["images/", ""])
@pytest.mark.parametrize("lists", [".", ".."])
def test_the_root_may_be_the_images_folder(tmp_path, prefix, lists):
    write_images(tmp_path)
    write_lists(tmp_path / "images" / lists, prefix)
    check(*build(tmp_path / "images"))


def check(train, test):
    assert (len(train), len(test)) == (28, 14)
    assert train.given.tolist() == [n % 14 for n in PARTS["noisy_train"]]
    assert test.given.tolist() == [(n + 1) % 14 for n in PARTS["clean_test"]]
    assert train.true is None
    assert test.true.tolist() == test.given.tolist()
    assert train.classes == CLASSES
    assert train.ids[1] == "clothing1m/1/01/1429296451,2096860000.jpg"
    batch = train.images[torch.tensor([2, 20])]
    assert batch.shape == (2, 3, 16, 16)
    assert (batch[:, 0].float().mean((1, 2)) - torch.tensor([10.0, 100.0])).abs().max() < 3


def test_unreadable_images_are_skipped_and_listed(tmp_path):
    write_images(tmp_path)
    write_lists(tmp_path)
    whole, _ = build(tmp_path)
    (tmp_path / key(7)).write_bytes(b"broken")
    with pytest.raises(UsageError, match=r"1429296457.* is not a readable image"):
        build(tmp_path)
    train, _ = build(tmp_path, max_bad=0.5)
    assert len(train) == len(whole) - 1
    assert len(train.skipped) == 1


def test_a_list_cannot_lead_out_of_the_folder(tmp_path):
    write_images(tmp_path)
    write_lists(tmp_path)
    for path in tmp_path.rglob("*.txt"):
        path.write_text(path.read_text().replace(key(7), "../outside.jpg"))
    with pytest.raises(UsageError, match="leaves its folder"):
        build(tmp_path)


def test_the_validation_set_can_be_the_test(tmp_path):
    write_images(tmp_path)
    write_lists(tmp_path)
    _, test = build(tmp_path, test="val")
    assert test.given.tolist() == [(n + 1) % 14 for n in PARTS["clean_val"]]


def test_a_subset_from_a_recipe(tmp_path):
    write_images(tmp_path)
    write_lists(tmp_path)
    train, test = build(tmp_path, subset=14)
    assert sorted(train.given.tolist()) == list(range(14))
    assert len(test) == 14
    with pytest.raises(UsageError, match="needs 3 images labelled T-Shirt; there are 2"):
        build(tmp_path, subset=29)


def test_a_number_of_images_that_is_not_official_warns(tmp_path):
    write_images(tmp_path)
    write_lists(tmp_path)
    with pytest.warns(UserWarning, match="not the official") as caught:
        DATASETS.build("clothing1m", root=str(tmp_path), size=8)
    words = [str(warning.message) for warning in caught]
    assert "noisy_train_key_list.txt has 28 images, not the official 1,000,000" in words[0]
    assert "clean_test_key_list.txt has 14 images, not the official 10,526" in words[1]


def test_missing_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"must hold images/ .* noisy_train_key_list\.txt"):
        build(tmp_path)
    write_lists(tmp_path)
    with pytest.raises(UsageError, match=r"none of the listed images .* images/0/00/.*unpack"):
        build(tmp_path)
    (tmp_path / "clean_label_kv.txt").unlink()
    write_images(tmp_path)
    with pytest.raises(UsageError, match=r"clean_label_kv\.txt cannot be read"):
        build(tmp_path)


@pytest.mark.parametrize("line", ["images/0/00/a.jpg 14", "images/0/00/a.jpg", "a b 3", "a x"])
def test_a_bad_line_is_shown(tmp_path, line):
    write_lists(tmp_path)
    with (tmp_path / "noisy_label_kv.txt").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UsageError, match=rf"noisy_label_kv\.txt: '{line}' is not a path and"):
        build(tmp_path)


def test_an_image_without_a_label_is_named(tmp_path):
    write_lists(tmp_path)
    with (tmp_path / "noisy_train_key_list.txt").open("a") as file:
        file.write("\nimages/9/99/lost.jpg\n")
    with pytest.raises(UsageError, match=r"1 images have no label .* images/9/99/lost\.jpg"):
        build(tmp_path)
