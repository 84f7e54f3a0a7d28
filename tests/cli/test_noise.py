"""`unswayed noise`, in-process."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from unswayed import Recipe
from unswayed.build import assemble
from unswayed.cli import main
from unswayed.noise.labels import LabelFile, encode, read


@pytest.fixture
def made(tmp_path, capsys):
    path = tmp_path / "labels.npz"
    assert main(["noise", "make", "digits", "noise.rate=0.3", "--out", str(path)]) == 0
    capsys.readouterr()
    return path


@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_make_saves_the_labels_a_training_would_be_given(
    suffix, tmp_path, tiny, tiny_words, capsys
):
    path = tmp_path / f"labels.{suffix}"
    assert main(["noise", "make", *tiny_words, "train.seed=5", "--out", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"{path}\n")
    assert "exactly 0.4 of the samples" in out
    assert "39.98 % of the labels (40.00 % expected)" in out
    trainer, noise = assemble(Recipe.load("digits", *tiny_words, "train.seed=5"))
    labels = read(path)
    assert np.array_equal(labels.given, trainer.train.given)
    assert np.array_equal(labels.before, trainer.train.true)
    assert labels.ids == trainer.train.ids
    assert labels.convention == noise.convention
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_saved_file_is_trained_on_whatever_the_seed(made, tiny_words):
    words = ("noise.name=file", f"noise.path={made}", "train.seed=8")
    trainer, noise = assemble(Recipe.load("digits", *tiny_words, *words))
    assert np.array_equal(trainer.train.given, read(made).given)
    assert noise.matrix() == pytest.approx(read(made).realised().matrix)


def test_pixels_decide_where_the_noise_asks_for_them(tmp_path, tiny_words, capsys):
    path = tmp_path / "labels.npz"
    assert main(["noise", "make", *tiny_words, "noise.name=instance", "--out", str(path)]) == 0
    assert "each image is mislabelled at its own rate" in capsys.readouterr().out
    trainer, _ = assemble(Recipe.load("digits", *tiny_words, "noise.name=instance"))
    assert np.array_equal(read(path).given, trainer.train.given)


def test_inspect_prints_convention_rate_and_matrix(made, tmp_path, capsys):
    svg = tmp_path / "matrix.svg"
    assert main(["noise", "inspect", str(made), "--svg", str(svg)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("convention  exactly 0.3 of the samples")
    assert lines[3].startswith("wrong       29.97 %")
    rows = [line.split("|")[1].split() for line in lines if "|" in line][2:]
    assert len(rows) == 10
    shares = np.array([[0.0 if cell == "·" else float(cell) for cell in row] for row in rows])
    assert shares == pytest.approx(100 * read(made).realised().matrix, abs=0.0501)
    assert lines[-1] == str(svg)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_inspect_lists_the_flips_of_many_classes(tmp_path, capsys):
    before = np.arange(60) % 30
    given = np.where(before == 3, 4, before)
    names = tuple(f"class {k}" for k in range(30))
    ids = tuple(map(str, range(60)))
    path = tmp_path / "labels.csv"
    labels = LabelFile(ids, before, given, names, "three is four", 0, np.eye(30))
    path.write_bytes(encode(labels, ".csv"))
    assert main(["noise", "inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "the 1 most frequent of 1 flips" in out
    assert "100.00 % of class 3 are given as class 4" in out


def test_compare_counts_what_differs(made, tmp_path, capsys):
    other = tmp_path / "other.csv"
    assert main(["noise", "make", "noise.rate=0.3", "train.seed=1", "--out", str(other)]) == 0
    capsys.readouterr()
    assert main(["noise", "compare", str(made), str(made)]) == 0
    assert "100.00 % agree; 0 labels differ" in capsys.readouterr().out
    assert main(["noise", "compare", str(made), str(other)]) == 0
    differ = int((read(made).given != read(other).given).sum())
    out = capsys.readouterr().out
    assert f"; {differ} labels differ" in out
    per_class = next(line.split() for line in out.splitlines() if line.split()[:1] == ["3"])
    third = read(made).before == 3
    assert int(per_class[1]) == third.sum()
    assert int(per_class[2]) == (read(made).given != read(other).given)[third].sum()
    assert int(per_class[3]) == (read(made).given != 3)[third].sum()


def test_compare_tells_data_that_differ(tmp_path, capsys):
    def save(name, ids, before, classes=("a", "b")):
        labels = LabelFile(ids, np.array(before), np.array([0, 1]), classes, "any", 0, np.eye(2))
        (tmp_path / name).write_bytes(encode(labels, ".npz"))
        return str(tmp_path / name)

    first = save("a.npz", ("x", "y"), [0, 1])
    assert main(["noise", "compare", first, save("b.npz", ("z", "x"), [0, 1])]) == 0
    out = capsys.readouterr().out
    assert "1 samples in common of 2 and 2" in out
    assert "1 of them were of another class before the noise" in out
    assert main(["noise", "compare", first, save("c.npz", ("u", "v"), [0, 1])]) == 2
    assert "no sample in common" in capsys.readouterr().err
    assert main(["noise", "compare", first, save("d.npz", ("x", "y"), [0, 1], ("a", "c"))]) == 2
    assert "different classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["make", "digist", "--out", "x.npz"],
        ["make", "--out", "x.txt"],
        ["make", "--out", "nowhere/x.npz"],
        ["make", "noise.rate=2", "--out", "x.npz"],
        ["make", "noise.name=asymmetric", "noise.map=next_in_superclass", "--out", "x.npz"],
        ["make", "noise.official_seed=2021", "--out", "x.npz"],
        ["make", "noise.name=matrix", "--out", "x.npz"],
        ["make", "noise.name=matrix", "noise.rows=[[1.0]]", "--out", "x.npz"],
        ["make", "noise.name=file", "--out", "x.npz"],
        ["make", "noise.name=file", "noise.path=nowhere.npz", "--out", "x.npz"],
        ["inspect", "nowhere.npz"],
        ["compare", "nowhere.npz", "nowhere.csv"],
    ],
)
def test_a_mistake_exits_with_2_in_one_line_and_writes_nothing(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["noise", *words]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("unswayed: ")
    assert len(err.splitlines()) == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_action_must_be_named(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["noise"])
    assert caught.value.code == 2
    capsys.readouterr()
