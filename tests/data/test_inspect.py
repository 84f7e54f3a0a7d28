from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import pytest
from pictures import broken, class_folders, picture

from unswayed import Run
from unswayed.cli import main
from unswayed.cli.data import lines
from unswayed.data import DATASETS
from unswayed.data.inspect import inspect


@pytest.fixture
def messy(tmp_path, rng):
    root = class_folders(tmp_path / "d", rng, {"cat": 40, "dog": 40, "newt": 3, "void": 0})
    shutil.copy(root / "cat" / "000.png", root / "cat" / "again.png")
    shutil.copy(root / "cat" / "001.png", root / "dog" / "same.png")
    (root / "dog" / "bad.jpg").write_bytes(b"nothing")
    picture(rng, (64, 64), "L").save(root / "newt" / "gray.jpg")
    return root


def test_says_what_is_there_and_what_is_wrong(messy, capsys):
    assert main(["data", "inspect", str(messy)]) == 0
    out = capsys.readouterr().out
    for words in (
        "train: 87 images, 3 classes",
        "cat: 41",
        "PNG (85), JPEG (1)",
        "L (1)",
        "40×30 (85), 64×64 (1)",
        "unreadable: 1",
        "dog/bad.jpg",
        "duplicates by content: 2 groups",
        "cat/001.png = dog/same.png",
        "different labels: 1 groups",
        "class 'newt' has 4 images",
        "void holds no images",
        f"unswayed train cpu/auto data.path={messy}",
    ):
        assert words in out


def test_the_command_can_be_pasted_into_a_shell(tmp_path, rng, capsys):
    root = class_folders(tmp_path / "my photos (2)", rng, {"cat": 12, "dog": 12})
    assert main(["data", "inspect", str(root)]) == 0
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("train on it: ")
    assert f"data.path={root}" in shlex.split(command)


def test_of_many_classes_the_first_are_shown_and_the_others_counted(tmp_path, rng, capsys):
    root = class_folders(tmp_path / "d", rng, {f"class{number:02}": 1 for number in range(13)})
    assert main(["data", "inspect", str(root)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "train: 13 images, 13 classes"
    assert out[11:13] == ["  class09: 1", "  and 3 more"]


def test_a_table_is_inspected_too(messy, capsys):
    table = messy / "table.csv"
    rows = [f"{name}/00{number}.png,{name}," for name in ("cat", "dog") for number in range(3)]
    table.write_text("path,label,split\n" + "\n".join([*rows[:-1], rows[-1] + "test"]))
    assert main(["data", "inspect", str(table)]) == 0
    out = capsys.readouterr().out
    assert "train: 5 images" in out
    assert "test: 1 images" in out
    assert out.splitlines()[-1].endswith(f"unswayed train cpu/auto data.path={table}")


def test_what_it_calls_unreadable_is_what_a_training_skips(tmp_path, rng, monkeypatch):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "d", rng, {"cat": 2, "dog": 2}, ".jpg")
    for number in range(120):
        suffix = (".jpg", ".png", ".gif", ".bmp", ".webp", ".tif")[number % 6]
        (root / "dog" / f"x{number:03d}{suffix}").write_bytes(broken(number, rng))
    found = inspect(root)
    skipped = DATASETS.build("folder", path=str(root), max_bad=1.0).train.skipped
    assert set(found.unreadable) == set(skipped)
    assert len(skipped) >= 100


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_truncated_image_is_found_and_training_would_refuse(tmp_path, rng, suffix, capsys):
    root = class_folders(tmp_path / "d", rng, {"cat": 6, "dog": 6}, suffix)
    file = root / "cat" / f"003{suffix}"
    file.write_bytes(file.read_bytes()[:-150])
    assert main(["data", "inspect", str(root)]) == 0
    out = capsys.readouterr().out
    assert f"cat/003{suffix}: " in out
    assert "1 of 12 train images cannot be read: a training would refuse" in out
    assert "data.max_bad=0.09" in out.splitlines()[-1]


def test_duplicates_across_train_and_test_are_told_apart(tmp_path, rng):
    class_folders(tmp_path / "train", rng, {"cat": 3, "dog": 3})
    class_folders(tmp_path / "test", rng, {"cat": 3, "dog": 3})
    shutil.copy(tmp_path / "train" / "cat" / "000.png", tmp_path / "test" / "cat" / "leak.png")
    shutil.copy(tmp_path / "train" / "dog" / "000.png", tmp_path / "train" / "dog" / "twin.png")
    found = inspect(tmp_path)
    assert len(found.duplicates) == 2
    assert [sorted(ids) for ids in found.leaks] == [["test/cat/leak.png", "train/cat/000.png"]]
    assert "of these both in train and in test: 1 groups" in "\n".join(lines(found))


def test_it_recommends_to_clean_and_then_to_train(tmp_path, rng, capsys):
    root = class_folders(tmp_path / "my photos", rng, {"cat": 12, "dog": 12})
    assert main(["data", "inspect", str(root)]) == 0
    clean, train = capsys.readouterr().out.splitlines()[-2:]
    assert shlex.split(clean)[-3:] == ["unswayed", "clean", str(root)]
    assert shlex.split(train)[-4:] == ["unswayed", "train", "cpu/auto", f"data.path={root}"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["cat/0.png,cat,", "dog/0.png,dog,"], "none of the 2 files exists"),
        (["cat/000.png,cat,", "cat/001.png,cat,"], "one class only, 'cat'"),
        (["cat/000.png,cat,", "dog/000.png,dog,"], "no class has two images"),
        (["dog/bad.jpg,dog,", "dog/bad.jpg,cat,"], "no training image can be read"),
        (["cat/000.png,cat,", "cat/001.png,cat,", "dog/bad.jpg,dog,"], "one class only, 'cat'"),
        (
            ["cat/000.png,cat,", "cat/001.png,cat,", "dog/000.png,dog,", "dog/001.png,newt,test"],
            "not trained on: 'newt'",
        ),
    ],
)
def test_what_cannot_be_trained_on_is_not_recommended(messy, rows, words, capsys):
    table = messy / "table.csv"
    numbered = [f"{row},{number}" for number, row in enumerate(rows)]
    table.write_text("path,label,split,id\n" + "\n".join(numbered))
    assert main(["data", "inspect", str(table)]) == 0
    out = capsys.readouterr().out
    last = out.splitlines()[-1]
    assert last.startswith("mend before training: ")
    assert words in last
    assert "unswayed train" not in out
    assert "unswayed clean" not in out


def test_links_that_leave_the_folder_are_told_and_the_command_follows_them(tmp_path, rng, capsys):
    class_folders(tmp_path / "outside", rng, {"a": 2, "b": 2})
    root = class_folders(tmp_path / "inside", rng, {"b": 2})
    (root / "a").symlink_to(tmp_path / "outside" / "a")
    assert main(["data", "inspect", str(root)]) == 0
    out = capsys.readouterr().out
    assert "a leaves the data folder" in out
    assert "data.links=true" in out.splitlines()[-1]


def test_one_class_is_an_error_that_says_what_is_expected(tmp_path, rng, capsys):
    class_folders(tmp_path / "d", rng, {"cat": 2})
    assert main(["data", "inspect", str(tmp_path / "d")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "one class only, 'cat'" in captured.err
    assert "expected is <class>/<image>.jpg" in captured.err


def test_the_recommended_training_plans_for_the_data_and_runs(tmp_path, rng, monkeypatch, capsys):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "d", rng, {"cat": 14, "dog": 14})
    words = [*shlex.split(inspect(root).train_command)[1:], "train.epochs=1"]
    folder = tmp_path / "run"
    assert main([*words, "--run", str(folder), "--minutes", "5"]) == 0
    said = capsys.readouterr().err
    assert "the plan for 5 minutes" in said
    assert "28 images in 2 classes" in said
    assert Run(folder).summary.epochs == 1
    assert main([*words, "--run", str(folder)]) == 0  # finished already
    assert "nothing was trained" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cpu/auto"], "name them: unswayed train cpu/auto data.path=photos"),
        (["cpu/auto", "data.path=nowhere"], "there is no folder and no file nowhere"),
        (["cpu/auto", "data.path=.", "--minutes", "0"], "--minutes must be a positive number"),
        (["digits", "--minutes", "5"], "--minutes is for the recipe cpu/auto"),
    ],
)
def test_a_plan_needs_data_and_time(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("what", ["nowhere", "."])
def test_nothing_to_inspect_exits_with_2(what, tmp_path, capsys):
    assert main(["data", "inspect", str(tmp_path / what)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_looking_needs_no_pytorch():
    code = "import sys; import unswayed.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
