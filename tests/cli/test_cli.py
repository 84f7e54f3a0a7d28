"""The command line in-process: exit codes, files, words."""

from __future__ import annotations

import csv
import importlib
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from unswayed import Run, __version__
from unswayed.cli import VERBS, main, parsed


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from conftest import TINY

    path = tmp_path_factory.mktemp("cli") / "run"
    assert main(["train", *TINY, "--run", str(path)]) == 0
    return path


def test_train_prints_the_numbers_and_the_folder(tiny_words, tmp_path, capsys):
    path = tmp_path / "run"
    assert main(["train", "digits", *tiny_words, "--run", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.strip().endswith(str(path))
    assert "test, last" in out
    assert "% of the labels are wrong" in err
    assert "epoch 2/2" in err
    assert err.strip().endswith(f"next: unswayed audit {path}")


def test_train_without_a_folder_makes_a_new_one_each_time(
    tiny_words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["train", *tiny_words, "train.epochs=1"]) == 0
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"digits", "digits-2"}
    capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        ["digist"],
        ["digits", "loss.name=gcee"],
        ["digits", "loss.p=1"],
        ["digits", "los.name=ce"],
        ["train.epochs=1", "digits"],
        ["train.device=gpu"],
        ["train.batch_size=100000"],
        ["data.name=npz", "data.path=nowhere.npz"],
        ["model.name=resnet18", "model.weights=nowhere.pth"],
        ["--run", "."],
    ],
)
def test_a_mistake_exits_with_2_in_one_line_and_writes_nothing(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("unswayed: ")
    assert len(err.splitlines()) == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(0, int), "empty"),
        (np.zeros(300, int), "one class only"),
        (np.arange(300) % 3 - 1, "outside the range"),
        (np.arange(20) % 2, "fewer training samples"),
    ],
)
def test_bad_data_exit_with_2_and_write_nothing(labels, message, tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "a.npz", train_x=np.zeros((len(labels), 8, 8), np.uint8), train_y=labels)
    monkeypatch.chdir(tmp_path)
    words = ["data.name=npz", "data.path=a.npz", "noise.name=none"]
    assert main(["train", *words, "--run", "r"]) == 2
    assert message in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_a_folder_that_cannot_be_written_exits_with_2(tiny_words, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["train", *tiny_words, "--run", str(tmp_path / "file" / "run")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_resume_of_a_finished_run_trains_nothing(trained, capsys):
    before = (trained / "metrics.jsonl").read_bytes()
    assert main(["resume", str(trained)]) == 0
    assert "finished already" in capsys.readouterr().err
    assert (trained / "metrics.jsonl").read_bytes() == before


def test_evaluate_gives_the_accuracy_of_the_run(trained, capsys):
    assert main(["evaluate", str(trained), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["last"]["test_accuracy"] == Run(trained).summary.last.test_accuracy
    assert main(["evaluate", str(trained)]) == 0
    assert f"{100 * found['last']['test_accuracy']:.2f} %" in capsys.readouterr().out


@pytest.fixture
def pictures(tmp_path):
    digit = np.zeros((20, 20), np.uint8)
    digit[4:16, 9:12] = 255
    paths = [tmp_path / "gray.png", tmp_path / "colour.jpg", tmp_path / "with, comma.bmp"]
    for path in paths:
        mode = "L" if path.suffix == ".png" else "RGB"
        Image.fromarray(digit).convert(mode).save(path)
    return [str(path) for path in paths]


def test_predict_names_a_class_for_every_image(trained, pictures, capsys):
    assert main(["predict", str(trained), *pictures]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == pictures
    assert all(row[1] in "0123456789" and 0 < float(row[2]) <= 1 for row in rows)


def test_predict_writes_csv_and_goes_on_past_a_bad_file(trained, pictures, tmp_path, capsys):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"nothing")
    target = tmp_path / "out.csv"
    words = ["predict", str(trained), str(bad), *pictures, "--csv", str(target)]
    assert main(words) == 1
    assert "bad.png is not a readable image" in capsys.readouterr().err
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == pictures


def test_compare_puts_runs_in_one_table(trained, capsys):
    assert main(["compare", str(trained), str(trained)]) == 0
    out = capsys.readouterr().out
    assert "ce + ctrr (simsiam)" in out
    assert "oracle" in out


def test_compare_refuses_what_is_not_a_run(tmp_path, capsys):
    assert main(["compare", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["loss", "losses", "models", "data", "noise", "views", "train"])
def test_list_shows_a_kind(kind, capsys):
    assert main(["list", kind]) == 0
    assert capsys.readouterr().out.startswith("[")


def test_list_shows_everything_with_options_defaults_and_papers(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for word in ("gce", "q = 0.7", "NeurIPS 2018", "tau = 0.4", "epochs = 100", "paper-simsiam"):
        assert word in out


def test_list_of_nothing_known_names_what_there_is(capsys):
    assert main(["list", "lozz"]) == 2
    assert "did you mean 'loss'" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_names_with_brackets_are_printed_as_they_are(tmp_path, rng, capsys):
    images = rng.integers(0, 256, (300, 8, 8), dtype=np.uint8)
    arrays = {"train_x": images, "train_y": np.arange(300) % 2, "test_x": images[:20]}
    names = np.array(["[/x]", "[red]"])
    np.savez(tmp_path / "a.npz", **arrays, test_y=np.arange(20) % 2, classes=names)
    path = tmp_path / "a[/b]"
    words = [
        "data.name=npz",
        f"data.path={tmp_path / 'a.npz'}",
        "train.epochs=1",
        "noise.name=none",
    ]
    assert main(["train", "digits-ce", *words, "model.width=4", "--run", str(path)]) == 0
    assert main(["evaluate", str(path)]) == 0
    out = capsys.readouterr().out
    assert "[/x]" in out
    assert "[red]" in out


def test_compare_looks_into_folders_and_leaves_out_what_is_not_finished(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "runs" / "a")
    shutil.copytree(trained, tmp_path / "runs" / "b")
    (tmp_path / "runs" / "b" / "summary.json").unlink()
    assert main(["compare", str(tmp_path / "runs"), str(tmp_path / "runs" / "a")]) == 0
    out, err = capsys.readouterr()
    assert "is not finished" in err
    assert "  1  " in " ".join(out.split("ce + ctrr (simsiam)")[1:])


def test_damage_is_one_line_and_exit_1(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text("{")
    assert main(["compare", str(tmp_path / "run")]) == 1
    err = capsys.readouterr().err
    assert "summary.json is damaged" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_listed_with_its_first_sentence_and_has_help(verb, capsys):
    module = importlib.import_module(f"unswayed.cli.{verb}")
    assert module.__doc__.splitlines()[0] == VERBS[verb]
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    assert verb in capsys.readouterr().out


def test_overrides_may_stand_behind_options():
    args = parsed(["train", "digits", "optimizer.lr=0.1", "--run", "x", "train.epochs=2"])
    assert (args.overrides, args.run) == (["digits", "optimizer.lr=0.1", "train.epochs=2"], "x")


@pytest.mark.parametrize(
    "words",
    [
        ["train", "digits", "--run", "x", "more"],
        ["train", "digits", "--rum=x"],
        ["compare", "runs", "--what=3"],
        ["resume", "x", "train.epochs=2"],
    ],
)
def test_what_is_not_understood_is_refused(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parsed(words)
    assert "unrecognized arguments" in capsys.readouterr().err


def test_train_says_how_many_files_were_skipped_and_where_they_are_listed(tmp_path, rng, capsys):
    for name in ("cat", "dog"):
        (tmp_path / "d" / name).mkdir(parents=True)
        for number in range(20):
            pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "d" / name / f"{number}.png")
    (tmp_path / "d" / "cat" / "bad.png").write_bytes(b"nothing")
    words = ["data.name=folder", f"data.path={tmp_path / 'd'}", "data.size=8", "data.max_bad=0.5"]
    small = ["noise.name=none", "model.width=4", "train.epochs=1", "train.batch_size=8"]
    path = tmp_path / "run"
    assert main(["train", "digits-ce", *words, *small, "--run", str(path)]) == 0
    listed = f"unreadable files left out: 1 (listed in {path}/skipped.json)\n"
    assert listed in capsys.readouterr().err
    assert list(json.loads((path / "skipped.json").read_text())) == ["cat/bad.png"]


@pytest.mark.parametrize("name", ["digits", "folder", "manifest", "animal10n", "clothing1m"])
def test_a_side_that_would_fill_the_memory_is_refused_at_once(name, tmp_path, capsys):
    path = [f"data.path={tmp_path}"] if name in ("folder", "manifest") else []
    assert main(["train", f"data.name={name}", *path, "data.size=1000000"]) == 2
    err = capsys.readouterr().err
    assert "option 'size' is 1000000" in err
    assert "3,000.00 GB of memory; choose at most 2048" in err
