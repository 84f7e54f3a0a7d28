from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import pytest
from pictures import class_folders, picture

from unswayed.cli import main


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
        f"unswayed train safe data.name=folder data.path={messy} data.size=32",
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
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "train: 13 images, 13 classes"
    assert lines[11:13] == ["  class09: 1", "  and 3 more"]


def test_a_table_is_inspected_too(messy, capsys):
    table = messy / "table.csv"
    table.write_text("path,label,split\ncat/000.png,cat,train\ndog/000.png,dog,test\n")
    assert main(["data", "inspect", str(table)]) == 0
    out = capsys.readouterr().out
    assert "train: 1 images" in out
    assert "test: 1 images" in out
    assert "data.name=manifest" in out


@pytest.mark.parametrize("what", ["nowhere", "."])
def test_nothing_to_inspect_exits_with_2(what, tmp_path, capsys):
    assert main(["data", "inspect", str(tmp_path / what)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_looking_needs_no_pytorch():
    code = "import sys; import unswayed.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
