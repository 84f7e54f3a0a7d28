from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from exports.examples import decide, digests
from unswayed import Run
from unswayed.cli import main
from unswayed.cli.progress import Watcher
from unswayed.types import Epoch

QUICK = ["train.epochs=3", "train.threads=1"]


def write_digits(folder, per_class=40):
    """Write zeros and ones as PNG files; four zeros are labelled as ones."""
    raw = load_digits()
    for digit, name in ((0, "zero"), (1, "one")):
        for number, pixels in enumerate(raw.images[raw.target == digit][:per_class]):
            label = "one" if digit == 0 and number < 4 else name
            file = folder / label / f"{digit}-{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((pixels * 15).astype(np.uint8)).save(file)
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("clean") / "my photos")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_command_plans_trains_audits_and_the_second_only_shows(photos, here, capsys):
    assert main(["clean", str(photos), *QUICK]) == 0
    out, err = capsys.readouterr()
    folder = here / "runs" / "my photos"
    assert "the plan for 10 minutes" in err
    assert "80 images in 2 classes" in err
    for words in ("labels are probably wrong", "worth a look", "of the 8 held-out images"):
        assert words in out
    assert "unswayed predict 'runs/my photos' IMAGE" in out
    rows = list(csv.DictReader((folder / "audit.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 80
    assert json.loads((folder / "audit.json").read_text(encoding="utf-8"))["samples"] == 80
    assert main(["clean", str(photos), *QUICK]) == 0
    out, err = capsys.readouterr()
    assert "finished already" in err
    assert "the plan" not in err
    assert "worth a look" in out


def stopping(watcher, event, real=Watcher.__call__):
    """Press Ctrl-C after an epoch."""
    real(watcher, event)
    if isinstance(event, Epoch):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupted_command_goes_on_with_the_same_plan(photos, here, capfd, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Watcher, "__call__", stopping)
        assert main(["clean", str(photos), *QUICK]) == 130
    assert "stopping after this step" in capfd.readouterr().err
    planned = Run("runs/my photos").recipe
    assert main(["clean", str(photos)]) == 0
    out, err = capfd.readouterr()
    assert "going on with" in err
    assert "the plan" not in err
    run = Run("runs/my photos")
    assert run.finished
    assert run.recipe == planned
    assert len(run.provenance.resumed) == 1
    assert "worth a look" in out


def test_dry_run_says_the_plan_and_makes_no_folder(photos, here, capsys):
    assert main(["clean", str(photos), "--dry-run", *QUICK]) == 0
    assert "the plan for 10 minutes" in capsys.readouterr().err
    assert not (here / "runs").exists()


def test_a_run_of_other_data_or_options_is_left_alone(photos, here, tmp_path, capsys):
    assert main(["clean", str(photos), "--run", "mine", *QUICK]) == 0
    other = write_digits(tmp_path / "other", per_class=20)
    capsys.readouterr()
    assert main(["clean", str(other), "--run", "mine"]) == 2
    assert "mine is a run of other data" in capsys.readouterr().err
    assert main(["clean", str(photos), "--run", "mine", "loss.name=ce"]) == 2
    assert "was planned with another loss." in capsys.readouterr().err


def test_data_that_changed_since_are_noticed(here, capsys):
    photos = write_digits(here / "photos", per_class=20)
    assert main(["clean", "photos", *QUICK]) == 0
    (photos / "one" / "0-0.png").rename(photos / "zero" / "0-0.png")
    capsys.readouterr()
    assert main(["clean", "photos", *QUICK]) == 2
    assert "not those runs/photos was started with" in capsys.readouterr().err


def test_an_npz_file_can_be_cleaned(here, capsys):
    raw = load_digits(n_class=2)
    np.savez(here / "mine.npz", train_x=(raw.images * 15).astype(np.uint8), train_y=raw.target)
    assert main(["clean", "mine.npz", *QUICK]) == 0
    assert f"{len(raw.target)} images in 2 classes" in capsys.readouterr().err
    assert Run("runs/mine").config.image_size == (8, 8)


def test_corrected_labels_are_written_trained_on_and_compared(here, capsys):
    photos = here / "my photos"
    write_digits(photos / "train")
    write_digits(photos / "test", per_class=60)
    words = ["clean", "my photos", "train.epochs=8", "train.threads=1", "--accept", "0.6"]
    before = digests(photos)
    assert main([*words, "--retrain"]) == 0
    out = capsys.readouterr().out
    assert "labels change without review" in out
    assert "test set, before -> after: " in out
    assert "noisy hold-out, before -> after: " in out
    assert "unswayed compare 'runs/my photos' 'runs/my photos-corrected'" in out
    assert digests(photos) == before
    run, again = Run("runs/my photos"), Run("runs/my photos-corrected")
    assert again.summary.epochs == run.summary.epochs == 8
    labels = Path("runs/my photos/corrected.csv").absolute()
    assert again.recipe.sections["data"]["corrected"] == str(labels)
    names = again.provenance.data.classes
    fixed = {n: names[k] for n, k in zip(again.samples().ids, again.samples().given, strict=True)}
    with labels.with_name("corrected.changes.csv").open(encoding="utf-8", newline="") as file:
        changes = {row["id"]: row["new_label"] for row in csv.DictReader(file)}
    assert changes
    assert changes.items() <= fixed.items()
    assert main([*words, "--retrain"]) == 0  # and nothing is trained twice
    assert capsys.readouterr().err.count("finished already") == 2
    assert main(["compare", "runs/my photos", "runs/my photos-corrected"]) == 0
    assert "labels: corrected.csv" in " ".join(capsys.readouterr().out.split())
    assert main(words) == 0
    assert "next: unswayed train 'runs/my photos/recipe.toml'" in capsys.readouterr().out


def test_an_interrupted_second_training_goes_on_and_decisions_count(here, capfd, monkeypatch):
    photos = write_digits(here / "photos", per_class=20)
    assert main(["clean", str(photos), *QUICK]) == 0
    decide(Run("runs/photos"), 0, "remove")
    words = ["clean", str(photos), "--accept", "0.99", "--retrain"]
    with monkeypatch.context() as patched:
        patched.setattr(Watcher, "__call__", stopping)
        assert main(words) == 130
    assert not Run("runs/photos-corrected").finished
    capfd.readouterr()
    assert main(words) == 0
    out, err = capfd.readouterr()
    assert "going on with: runs/photos-corrected" in err
    assert "1 samples are left out" in out
    assert len(Run("runs/photos-corrected").provenance.resumed) == 1
    assert Run("runs/photos-corrected").provenance.data.samples == 39


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["photos", "--accept", "1.5"], "--accept is a probability"),
        (["nothing"], "there is no folder and no file nothing"),
        (["photos", "--minutes", "0"], "--minutes must be"),
        (["photos", "--run", "photos/run"], "would be inside the data"),
        (["photos", "--run", "full"], "full is not empty and not a run folder"),
        (["photos/one"], "no two class folders with images"),
    ],
)
def test_mistakes_are_named_before_anything_is_measured(words, message, here, capsys):
    write_digits(here / "photos", per_class=4)
    (here / "full").mkdir()
    (here / "full" / "thesis.txt").write_text("years")
    assert main(["clean", *words]) == 2
    assert message in capsys.readouterr().err
