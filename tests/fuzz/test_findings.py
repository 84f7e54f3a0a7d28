"""Files that once broke a reader, and odd files of a fixed seed, hold to what fuzz_targets.py says.

`found/` holds literal findings of `make fuzz`, named after their target. Findings that were made by
hand, since they need a whole file that no single byte describes, are built here.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import shutil
import struct
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from fuzz_inputs import npy, png
from fuzz_targets import SMALL, TARGETS, Outcome, Target, _template, outcome, prepare
from PIL import Image

import unswayed
from unswayed import UsageError
from unswayed.data import cifar, cifarn
from unswayed.data.decode import decode, opened
from unswayed.data.inspect import inspect
from unswayed.data.manifest import manifest
from unswayed.data.npz import npz
from unswayed.data.unpickle import unpickle
from unswayed.errors import LONGEST, DamagedFileError, one_line

FOUND = sorted((Path(__file__).parent / "found").glob("*.bin"))
RANDOM = 12


@pytest.fixture(scope="module", autouse=True)
def run(tmp_path_factory):
    prepare(tmp_path_factory.mktemp("fuzz") / "run")


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_what_once_broke_a_reader_is_read_or_refused_in_a_line(file, tmp_path):
    target = TARGETS[file.stem.rpartition("-")[0]]
    assert outcome(target, file.read_bytes(), tmp_path).problem == ""


@pytest.mark.parametrize("name", TARGETS)
def test_odd_files_are_read_or_refused_in_a_line(name, tmp_path):
    """A valid file must be read, too: a reader that refuses everything would pass otherwise."""
    target, rng = TARGETS[name], random.Random(7)
    seeds = list(target.seeds())
    found = [outcome(target, seed, tmp_path) for seed in seeds]
    assert any(each.read for each in found)
    for _ in range(RANDOM):
        data = bytearray(rng.choice(seeds) if rng.random() < 0.5 else rng.randbytes(60))
        for _ in range(rng.randrange(4) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        found.append(outcome(target, bytes(data), tmp_path))
    assert [each.problem for each in found if each.problem] == []


def _of(attempt, tmp_path) -> Outcome:
    return outcome(Target("by hand", "", lambda data, folder: attempt(folder)), b"", tmp_path)


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (lambda folder: 1 / 0, "ZeroDivisionError"),
        (lambda folder: pickle.loads(pickle.dumps(Path())), "pickle.find_class"),
        (lambda folder: os.system("true"), "os.system"),
        (lambda folder: (folder.parent / "x").write_text("x"), "open outside"),
        (lambda folder: (_ for _ in ()).throw(DamagedFileError("x", "y")), "several lines"),
    ],
)
def test_the_property_can_fail(attempt, said, tmp_path):
    assert said in _of(attempt, tmp_path).problem


def test_a_hang_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz_targets.CPU_SECONDS", 0.2)

    def attempt(folder):
        while True:
            pass

    assert "Hang" in _of(attempt, tmp_path).problem


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path):
    body = npy("|u1", "(20000000,)", b"")
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_BZIP2) as archive,
        archive.open("train_x.npy", "w") as member,
    ):
        member.write(body)
        member.write(bytes(20_000_000))
    with pytest.raises(UsageError, match="unpack to 20,"):
        npz(path=str(tmp_path / "x.npz"))


def test_a_label_without_end_makes_no_names_without_end(tmp_path):
    images, labels = np.zeros((2, 4, 4), np.uint8), np.array([0, 2**62])
    np.savez(tmp_path / "x.npz", train_x=images, train_y=labels)
    with pytest.raises(UsageError, match=r"below 1,000,000; 4611686018427387904 is among"):
        npz(path=str(tmp_path / "x.npz"))


def test_a_pickle_reserves_no_more_memory_than_it_fills():
    with pytest.raises(UsageError, match=r"it numbers 4,000,000,000 values"):
        unpickle(b"K\x01r" + struct.pack("<I", 4_000_000_000) + b".", "x")


def test_a_pickle_of_lists_in_lists_is_refused():
    """Thirty lists, each of the one before, twice, are a billion values."""
    made: list = [1]
    for _ in range(30):
        made = [made, made]
    started = time.process_time()
    with pytest.raises(UsageError, match="lists of lists are not expected"):
        unpickle(pickle.dumps(made, 2), "x")
    assert time.process_time() - started < 2


def test_one_number_that_stands_for_a_billion_is_no_vector_of_labels(tmp_path):
    torch.save({"clean_label": torch.zeros(1, dtype=torch.int64).expand(10**9)}, tmp_path / "x.pt")
    known = cifarn.read_labels(tmp_path / "x.pt")
    with pytest.raises(UsageError, match=r"its 1,000,000,000 numbers are not all there"):
        cifarn._labels(known, ["clean_label"], tmp_path / "x.pt")


def test_an_archive_of_cifar_is_unpacked_up_to_its_size(tmp_path):
    with (
        gzip.open(tmp_path / "p.tar.gz", "wb") as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        info = tarfile.TarInfo("zeros")
        info.size = 5_000_000
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(UsageError, match="more than the official"):
        cifar.load(SMALL, "fine", cifar.Source(str(tmp_path), "python", "ignore"))


def test_an_image_that_is_a_program_is_not_run(tmp_path):
    """Pillow hands an EPS file, whatever its name, to the program Ghostscript."""
    Image.new("RGB", (9, 9)).save(tmp_path / "x.eps")
    (tmp_path / "x.eps").rename(tmp_path / "x.jpg")
    with Image.open(tmp_path / "x.jpg") as image:
        assert image.format == "EPS"
    with pytest.raises(UsageError, match="not a readable image"):
        decode(tmp_path / "x.jpg", 3, (8, 8))


def test_a_large_image_is_refused_before_it_is_decoded(tmp_path):
    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    (tmp_path / "x.png").write_bytes(png([(b"IHDR", head), (b"IDAT", b""), (b"IEND", b"")]))
    with pytest.raises(UsageError, match="not a readable image"):
        decode(tmp_path / "x.png", 3, (8, 8))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_named_like_an_image_keeps_nobody_waiting(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", (8, 8)).save(tmp_path / name / f"{number}.png")
    os.mkfifo(tmp_path / "a" / "p.jpg")
    found = inspect(tmp_path)
    assert found.unreadable == {"a/p.jpg": "it is no file"}
    with pytest.raises(ValueError, match="no file"), opened(tmp_path / "a" / "p.jpg"):
        pass


def test_folders_of_links_to_each_other_end(tmp_path, monkeypatch):
    """Twenty folders with three links each to the next one are 3^20 paths."""
    for number in range(21):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "x.png").touch()
    for number in range(20):
        for name in ("a", "b", "c"):
            (tmp_path / f"d{number}" / name).symlink_to(tmp_path / f"d{number + 1}")
    monkeypatch.setattr("unswayed.data.listing.MOST_LINKS", 500)
    with pytest.raises(UsageError, match="more than 500 links to folders"):
        inspect(tmp_path)


def test_folders_are_not_followed_without_end(tmp_path):
    place = tmp_path
    for _ in range(120):
        place = place / "d"
        place.mkdir()
    with pytest.raises(UsageError, match="more than 100 deep"):
        inspect(tmp_path)


def test_a_link_to_itself_is_named(tmp_path):
    (tmp_path / "x.png").symlink_to("x.png")
    with pytest.raises(UsageError, match=r"x\.png points to itself"):
        inspect(tmp_path)
    (tmp_path / "y.png").symlink_to("y.png")
    (tmp_path / "t.csv").write_text("path,label\nx.png,a\ny.png,b\n", encoding="utf-8")
    with pytest.raises(UsageError, match="images cannot be read"):
        manifest(str(tmp_path / "t.csv"))


def test_a_record_with_a_name_that_is_not_ours_is_left_alone(tmp_path):
    shutil.copytree(_template(), tmp_path / "run")
    (tmp_path / "run" / "records" / "epoch-last.safetensors").write_bytes(b"x")
    assert len(unswayed.Run(tmp_path / "run").records().loss) == 1


def test_a_config_that_asks_for_a_huge_network_takes_no_memory(tmp_path):
    shutil.copytree(_template(), tmp_path / "run")
    file = tmp_path / "run" / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["model"]["width"] = 2_000_000
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(DamagedFileError, match=r"config\.json is damaged: they do not fit"):
        unswayed.Run(tmp_path / "run").classifier()


def test_messages_are_one_line_that_no_terminal_obeys():
    said = str(UsageError("a\nb\x1b[31m\u202e\ud800" + "x" * 5000 + "; do this"))
    assert said.startswith("a b\\x1b[31m\\u202e\\ud800xxx")
    assert said.endswith("xxx; do this")
    assert "\n" not in said
    assert len(said) < LONGEST + 50
    assert str(UsageError("two:", "first\n", "second")) == "two:\n  first\n  second"
    assert one_line("é ü \u00a0") == "é ü"
