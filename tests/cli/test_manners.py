"""How the command line behaves when something is wrong, early or cut short."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import unswayed.cli
from unswayed.bench.formats import FORMATS
from unswayed.cli import BROKEN_PIPE, bench, main

COMMAND = [sys.executable, "-m", "unswayed"]


def without_a_reader(words, unbuffered):
    """Return exit code and stderr of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["list"], ["list", "recipes"]])
def test_a_reader_that_has_left_ends_it_quietly(words, unbuffered):
    assert without_a_reader(words, unbuffered) == (BROKEN_PIPE, "")


def test_a_reader_of_help_that_has_left_ends_it_quietly():
    assert without_a_reader(["--help"], "") == (BROKEN_PIPE, "")
    assert without_a_reader(["--help"], "1") == (0, "")  # argparse has noticed it first


def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == "unswayed: [Errno 28] No space left on device\n"


def test_a_wrong_verb_is_one_line_with_a_hint(capsys):
    assert main(["trian", "digits"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("unswayed: there is no verb 'trian'; did you mean 'train'?")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["train", "--epochs", "3"], "options of a recipe are written train.epochs=3"),
        (["train", "digits", "--epochs=3"], "options of a recipe are written train.epochs=3"),
        (["train", "--batch-size", "8"], "are written train.batch_size=8"),
        (["demo", "--loss", "gce"], "are written loss.name=gce"),
        (["train", "--method=elr"], "are written method=elr"),
        (["train", "--tau", "--run", "x"], "are written regularizer.tau=VALUE"),
        (["train", "--frobnicate", "1"], "section.key=value, such as train.epochs=3"),
        (["train", "--rum", "x"], "did you mean --run?"),
        (["bench", "grid", "--sead=1"], "did you mean --seeds?"),
    ],
)
def test_an_unknown_option_comes_with_a_hint(words, advice, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert advice in capsys.readouterr().err


def test_a_verb_without_overrides_gives_no_hint_at_them(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["resume", "x", "--epochs", "3"])
    assert capsys.readouterr().err.endswith("unrecognized arguments: --epochs 3\n")


def test_a_warning_is_one_plain_line_and_the_library_keeps_its_own(monkeypatch, capsys):
    def warn(_args):
        warnings.warn("some images\nare odd", stacklevel=1)
        return 0

    before = warnings.showwarning
    monkeypatch.setattr(unswayed.cli.importlib.import_module("unswayed.cli.list"), "run", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["list"]) == 0
    assert capsys.readouterr().err == "unswayed: note: some images are odd\n"
    assert warnings.showwarning is before


def test_an_interruption_while_loading_is_no_traceback(monkeypatch, capsys):
    def interrupted(_words):
        raise KeyboardInterrupt

    monkeypatch.setattr(unswayed.cli, "parsed", interrupted)
    assert main(["list"]) == 130
    assert capsys.readouterr().err == "unswayed: interrupted\n"


def test_formats_of_a_table_are_those_there_are():
    assert tuple(FORMATS) == bench.FORMATS
