from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import picture

from unswayed import UsageError
from unswayed.data.layout import find_layout, role


def image() -> bytes:
    buffer = io.BytesIO()
    picture(np.random.default_rng(0), (4, 4)).save(buffer, "PNG")
    return buffer.getvalue()


IMAGE = image()


def plant(root: Path, *places: str) -> Path:
    """Write an image to each place that has a suffix, and make the others folders."""
    root.mkdir(parents=True, exist_ok=True)
    for place in places:
        path = root / place
        folder = path.parent if path.suffix else path
        folder.mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.write_bytes(IMAGE)
    return root


def split(*names: str, classes=("a", "b")) -> tuple[str, ...]:
    return tuple(f"{name}/{label}/x.png" for name in names for label in classes)


def decided(root: Path, **options):
    """Return the paths of train, test and unused folders, and the remarks as one text."""
    layout = find_layout(root, **options)

    def below(folder):
        return folder.path.relative_to(root).as_posix()

    return (
        [below(each) for each in layout.train],
        layout.test and below(layout.test),
        [below(each) for each in layout.unused],
        "\n".join(layout.remarks),
    )


TREES = {
    # name: (places, train, test, unused, words of the remarks)
    "classes in the root": (split("."), ".", None, [], []),
    "train and test": (split("train", "test"), "train", "test", [], []),
    "any case": (split("Training", "TEST"), "Training", "TEST", [], []),
    "validation is the test set": (
        split("train", "validation"),
        *("train", "validation", []),
        ["validation is tested on, as no test folder has classes"],
    ),
    "dev": (split("train", "dev"), "train", "dev", [], ["dev is tested on"]),
    "all three": (
        split("train", "valid", "test"),
        *("train", "test", ["valid"]),
        ["valid is not used (2 images)", """'data.train_folders=["train", "valid"]'"""],
    ),
    "a wrapper": (
        split("archive/data"),
        *("archive/data", None, []),
        ["the classes lie in archive/data: that level is used"],
    ),
    "splits in a wrapper": (
        split("x/train", "x/test"),
        *("x/train", "x/test", []),
        ["classes lie in x/train"],
    ),
    "Kaggle's doubled folders": (
        (*split("seg_train/seg_train", "seg_test/seg_test"), "seg_pred/seg_pred/1.png"),
        *("seg_train/seg_train", "seg_test/seg_test", ["seg_pred"]),
        [
            "classes lie in seg_train/seg_train",
            "seg_test/seg_test is tested on",
            "seg_pred is not used: its 1 images are not in folders of the classes",
        ],
    ),
    "affixes": (
        split("train_set", "my-test", "val 2"),
        *("train_set", "my-test", ["val 2"]),
        ["classes lie in train_set", "my-test is tested on", "val 2 is not used"],
    ),
    "a doubled data set beside itself": (
        split("train", "test", "xray/train", "xray/test"),
        *("train", "test", ["xray"]),
        ["xray is not used"],
    ),
    "a data set beside samples": (
        (*split("data/train", "data/test"), "samples/1.png"),
        *("data/train", "data/test", ["samples"]),
        ["classes lie in data/train", "samples is not used"],
    ),
    "a class named test": (
        ("cat/x.png", "dog/x.png", "test/x.png"),
        *(".", None, []),
        ["test is taken for a class, as the folders beside it are"],
    ),
    "a class named train with folders beside others with folders": (
        ("car/x/1.png", "bus/y/1.png", "train/z/1.png"),
        *(".", None, []),
        ["train is taken for a class"],
    ),
    "a test folder beside the classes": (
        ("cat/x.png", "dog/x.png", *split("test", classes=("cat", "dog"))),
        *(".", "test", []),
        [],
    ),
    "a test folder of other things beside the classes": (
        ("cat/x.png", "dog/x.png", *split("test")),
        *(".", None, ["test"]),
        ["test is not used: its 2 images are not in folders of the classes"],
    ),
    "a training folder with another name": (
        split("photos", "test"),
        *("photos", "test", []),
        ["classes lie in photos", "photos is trained on, as it lies beside test"],
    ),
    "test images without labels": (
        (*split("train", "val"), "test/1.png"),
        *("train", "val", ["test"]),
        ["val is tested on, as no test folder has classes", "test is not used"],
    ),
    "several folders to train on": (
        split("train_2", "train_10"),
        *("train_2", None, ["train_10"]),
        ["train_10 is not used", '["train_2", "train_10"]'],
    ),
    "a test set of one class": (
        (*split("train"), "test/a/x.png"),
        *("train", "test", []),
        ["test has no images of 'b'"],
    ),
    "images beside class folders": (
        (*split("."), "1.png", "2.png"),
        *(".", None, []),
        ["2 images lie in the folder itself, beside the class folders: left out"],
    ),
    "images beside class folders, deeper": (
        (*split("train", "test"), "train/1.png"),
        *("train", "test", []),
        ["1 images lie in train, beside the class folders: left out"],
    ),
    "an empty class": ((*split("."), "void"), ".", None, [], ["void holds no images"]),
    "images deeper in a class": (
        (*split("."), "a/more/1.png", "b/old/1.png", "b/new/1.png"),
        *(".", None, []),
        [],
    ),
    "classes of folders only": (
        split("cat", "dog", classes=("2019", "2020")),
        *(".", None, []),
        ["images of cat, dog lie in folders of their own (2019, 2020): all of them count"],
    ),
    "litter": (
        (*split("."), "__MACOSX/a/x.png", ".ipynb_checkpoints/x.png", "a/._x.png", "Thumbs.db"),
        *(".", None, []),
        [],
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_gives_this_decision_and_says_what_is_odd(tmp_path, name):
    places, train, test, unused, words = TREES[name]
    found = decided(plant(tmp_path / "d", *places))
    assert found[:3] == ([train], test, unused)
    for text in words:
        assert text in found[3]
    assert bool(found[3]) == bool(words), found[3]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ((), "it holds no images"),
        (("a", "b"), "it holds no images (a, b: no images)"),
        (("1.png", "2.png"), "2 images lie directly in it"),
        (("cat/1.png", "dog"), "one class only, 'cat': nothing to tell apart (dog: no images)"),
        (("x/y/cat/1.png",), "one class only, 'cat'"),
        (("train/cat/1.png", "test/cat/1.png"), "one class only, 'cat'"),
        (("cat/1.png", "test/cat/1.png", "test/dog/1.png"), "one class only, 'cat'"),
        (("train/1.png", "test1/1.png"), "images lie directly in test1, train"),
        (split("test", "val"), """none for training; rename one to train, or say which"""),
        (split("x/train", "x/test", "y/train", "y/test"), "several data sets"),
    ],
)
def test_a_tree_without_two_classes_is_an_error_that_says_why(tmp_path, places, words):
    with pytest.raises(UsageError) as caught:
        find_layout(plant(tmp_path / "d", *places))
    assert words in str(caught.value)


def test_named_folders_are_trained_on_and_the_rest_keeps_its_role(tmp_path):
    root = plant(tmp_path / "d", *split("x/train", "x/val", "x/test"), "x/more/more/a/1.png")
    assert decided(root, train_folders=("x/val", "x/more"))[:3] == (
        ["x/val", "x/more/more"],
        "x/test",
        ["x/train"],
    )
    with pytest.raises(UsageError, match=r"'x/vla' is no folder .* more, test, train, val"):
        find_layout(root, train_folders=("x/vla",))


def test_the_option_that_a_remark_gives_works(tmp_path):
    import shlex
    import tomllib

    root = plant(tmp_path / "d", *split("x/train", "x/my val", "x/test"))
    option = shlex.split(decided(root)[3].rpartition("as well: ")[2])[0]
    folders = tomllib.loads(option.removeprefix("data."))["train_folders"]
    assert decided(root, train_folders=folders) == (["x/train", "x/my val"], "x/test", [], "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Train", "train"),
        ("training_images", "train"),
        ("train2017", "train"),
        ("my-test", "test"),
        ("VALID set", "validation"),
        ("seg_pred", "unlabelled"),
        ("trainers", ""),
        ("latest", ""),
        ("train_test_split", ""),
    ],
)
def test_a_role_is_a_whole_word_of_the_name(name, expected):
    assert role(name) == expected


NAMES = st.sampled_from(["train", "test", "val", "seg_pred", "a", "b", "data", "__MACOSX"])
PLACES = st.lists(
    st.builds(
        lambda names, end: "/".join([*names, end]),
        st.lists(NAMES, max_size=4),
        NAMES | st.just("x.png"),
    ),
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(places=PLACES, more=st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8))
def test_any_tree_gives_two_classes_or_a_word(tmp_path_factory, places, more):
    deep = ["/".join([*names, "y.png"]) for names in more]
    root = plant(tmp_path_factory.mktemp("tree"), *places, *deep)
    try:
        layout = find_layout(root)
    except UsageError:
        return
    listed = layout.listings()
    train, test = listed["train"], listed.get("test")
    assert len(set(train.labels)) >= 2
    assert test is None or set(test.labels) & set(train.labels)
    every = [*train.ids, *(test.ids if test else [])]
    assert len(every) == len(set(every))
    unused = {folder.path / name for folder in layout.unused for name in folder.images()}
    assert not unused & {*train.paths, *(test.paths if test else [])}
    left = {*root.rglob("*.png")} - unused - {root / name for name in every}
    seen = [path for path in left if "__MACOSX" not in path.parts]
    assert not seen or "left out" in "\n".join(layout.remarks)
