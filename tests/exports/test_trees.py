from __future__ import annotations

import csv
import os

import numpy as np
import pytest
from pictures import class_folders, picture

import unswayed
from exports.examples import decide, digests, next_recipe, trained
from unswayed import UsageError

NAMES = ("<b>&", 'it\'s "x"', "\u202eevil")


@pytest.fixture
def photos(tmp_path, rng):
    """Folders train/<class>/sub/<image> with equal names, test/<class>, and a broken file."""
    photos = tmp_path / "my photos"
    for name in NAMES:
        class_folders(photos / "train" / name, rng, {"sub": 7})
        class_folders(photos / "test", rng, {name: 2})
    picture(rng).save(photos / "train" / NAMES[0] / ("x" * 200 + "\n.png"))
    (photos / "train" / NAMES[1] / "broken.png").write_bytes(b"no image")
    return photos


@pytest.fixture
def run(photos, tmp_path):
    words = ("data.name=folder", f"data.path={photos}", "data.size=8", "data.max_bad=0.5")
    run = trained(tmp_path / "run", *words)
    decide(run, 0, "relabel", NAMES[2])
    decide(run, 3, "remove")
    return run


def by_pixels(data):
    """Return class names by image."""
    images = np.asarray(data.images)
    return {images[row].tobytes(): data.classes[k] for row, k in enumerate(data.given)}


@pytest.mark.parametrize("format", ["links", "copies"])
def test_the_new_tree_has_the_same_images_with_corrected_classes(run, photos, format):
    before = digests(photos)
    found = unswayed.export(run, format=None if format == "links" else format)
    assert found.path == run.path / "corrected"
    assert found.format == format
    assert digests(photos) == before
    train, test = run.data()
    expected = by_pixels(train)
    images = np.asarray(train.images)
    expected[images[0].tobytes()] = NAMES[2]
    del expected[images[3].tobytes()]
    new = next_recipe(found).build("data")
    assert by_pixels(new.train) == expected
    assert by_pixels(new.test) == by_pixels(test)
    assert list(new.train.skipped) == [f"train/{NAMES[1]}/broken.png"]
    moved = found.path / "train" / NAMES[2] / "sub" / "000-2.png"
    assert moved.is_symlink() == (format == "links")
    assert moved.read_bytes() == (photos / train.ids[0]).read_bytes()
    assert (found.path / "changes.csv").is_file()
    assert ("data.links=true" in found.next) == (format == "links")


def test_exporting_again_changes_nothing_and_new_decisions_replace(run, photos):
    found = unswayed.export(run)
    before, node = digests(run.path), found.path.stat().st_ino
    unswayed.export(run)
    assert digests(run.path) == before
    assert found.path.stat().st_ino == node
    decide(run, 1, "remove")
    unswayed.export(run)
    assert digests(run.path) != before
    left = [name for name in run.path.iterdir() if name.name.startswith(".corrected")]
    assert left == []


def test_a_plan_of_moves_moves_nothing_and_can_be_carried_out(run, photos):
    before = digests(photos)
    found = unswayed.export(run, format="moves")
    assert digests(photos) == before
    assert found.next == ""
    assert "nothing was moved" in str(found)
    with found.path.open(newline="") as file:
        plan = list(csv.DictReader(file))
    ids = run.samples().ids
    to = f"train/{NAMES[2]}/sub/000-2.png"
    assert plan == [{"from": ids[0], "to": to}, {"from": ids[3], "to": ""}]


def test_names_that_are_taken_get_a_number_even_if_two_change_places(tmp_path, rng):
    photos = class_folders(tmp_path / "photos", rng, {"a": 6, "b": 6})
    run = trained(tmp_path / "run", "data.name=folder", f"data.path={photos}", "data.size=8")
    decide(run, 0, "relabel", "b")
    decide(run, 6, "relabel", "a")
    found = unswayed.export(run)
    links = {
        p.relative_to(found.path).as_posix(): str(p.readlink()) for p in found.path.rglob("*.png")
    }
    assert len(links) == len(set(links.values())) == 12
    assert links["b/000-2.png"] == str(photos / "a" / "000.png")
    assert links["a/000-2.png"] == str(photos / "b" / "000.png")
    assert "a/000.png" not in links


def test_names_that_are_not_utf8_become_links(tmp_path, rng):
    photos = class_folders(tmp_path / "photos", rng, {"a": 6, "b": 6})
    odd = os.fsdecode(b"\xff.png")
    try:
        (photos / "a" / "000.png").rename(photos / "a" / odd)
    except OSError:
        pytest.skip("this file system holds UTF-8 only")
    run = trained(tmp_path / "run", "data.name=folder", f"data.path={photos}", "data.size=8")
    row = run.samples().ids.tolist().index("a/\\xff.png")
    decide(run, row, "relabel", "b")
    found = unswayed.export(run)
    assert (found.path / "b" / odd).is_symlink()
    with pytest.raises(UsageError, match="is not UTF-8, which a table cannot hold"):
        unswayed.export(run, format="manifest")


def table(tmp_path, rng, classes, extra="", *words):
    photos = class_folders(tmp_path / "photos", rng, {"x": 6, "y": 6})
    rows = [f"{name}/00{i}.png" for name in "xy" for i in range(6)] + [extra] * bool(extra)
    with (photos / "labels.csv").open("w", newline="") as file:
        labels = [classes[i % 2] for i in range(len(rows))]
        csv.writer(file).writerows([("path", "label"), *zip(rows, labels, strict=True)])
    words = (f"data.path={photos / 'labels.csv'}", "data.size=8", *words)
    return trained(tmp_path / "run", "data.name=manifest", *words)


def test_a_table_becomes_a_tree(tmp_path, rng):
    run = table(tmp_path, rng, ("cat", "it's <b>"), "gone/000.png", "data.max_bad=0.5")
    decide(run, 1, "relabel", "cat")
    found = unswayed.export(run, tmp_path / "new" / "tree", format="copies")
    assert sorted(p.name for p in found.path.iterdir()) == ["cat", "changes.csv", "it's <b>"]
    expected = by_pixels(run.data().train)
    expected[np.asarray(run.data().train.images)[1].tobytes()] = "cat"
    assert by_pixels(next_recipe(found).build("data").train) == expected


@pytest.mark.parametrize("bad", ["..", ".", "../../evil", "/etc", "a/b", ".hidden", "__MACOSX"])
def test_a_class_that_is_no_folder_name_never_leaves_the_folder(tmp_path, rng, bad):
    run = table(tmp_path, rng, ("cat", bad))
    before = digests(tmp_path)
    with pytest.raises(UsageError, match="cannot be a folder's name; use --as manifest"):
        unswayed.export(run, tmp_path / "new", format="copies")
    assert digests(tmp_path) == before
    assert not (tmp_path / "new").exists()


def test_a_class_may_be_called_like_the_table_of_changes(tmp_path, rng):
    run = table(tmp_path, rng, ("cat", "changes.csv"))
    found = unswayed.export(run, tmp_path / "new", format="links")
    assert sorted(p.name for p in found.path.iterdir()) == ["cat", "changes-2.csv", "changes.csv"]
