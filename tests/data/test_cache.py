from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from pictures import class_folders
from PIL import Image

from unswayed import UsageError
from unswayed.data import DATASETS, cache, stores
from unswayed.data.cache import open_images


@pytest.fixture
def paths(tmp_path, rng, monkeypatch):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))
    class_folders(tmp_path / "d", rng, {"a": 30})
    return sorted((tmp_path / "d" / "a").iterdir())


def opened(paths, kind="disk"):
    return open_images(paths, 3, (16, 16), cache=kind)


def no_decoding(monkeypatch):
    def refuse(*_):
        raise AssertionError("decoded again")

    monkeypatch.setattr(cache, "decode", refuse)


def test_a_second_run_decodes_nothing(paths, monkeypatch):
    first = opened(paths).images[torch.arange(30)]
    no_decoding(monkeypatch)
    assert torch.equal(opened(paths).images[torch.arange(30)], first)


def test_a_changed_file_is_noticed(paths):
    before = opened(paths).images
    content = paths[3].read_bytes()
    paths[3].write_bytes(paths[4].read_bytes())
    os.utime(paths[3], ns=(time.time_ns(), time.time_ns() + 10**9))
    after = opened(paths).images
    assert torch.equal(after[torch.tensor([3])], before[torch.tensor([4])])
    assert before.fingerprint() != after.fingerprint()
    assert content


def test_a_killed_build_goes_on_where_it_was(paths, monkeypatch):
    real, calls = cache.decode, []

    def dies(path, *rest):
        calls.append(path)
        if len(calls) == 21:
            raise KeyboardInterrupt
        return real(path, *rest)

    monkeypatch.setattr(cache, "CHUNK", 5)
    monkeypatch.setattr(cache, "decode", dies)
    with pytest.raises(KeyboardInterrupt):
        opened(paths)
    done = len(calls)
    calls.clear()

    def counts(path, *rest):
        calls.append(path)
        return real(path, *rest)

    monkeypatch.setattr(cache, "decode", counts)
    images = opened(paths).images
    assert 0 < len(calls) <= 30 - (done - 5) + 5
    expected = open_images(paths, 3, (16, 16), cache="memory").images
    assert torch.equal(images[torch.arange(30)], expected)


def test_unreadable_files_stay_known(paths, monkeypatch):
    paths[2].write_bytes(b"")
    first = opened(paths)
    no_decoding(monkeypatch)
    again = opened(paths)
    assert first.bad == again.bad
    assert list(again.bad) == [2]
    assert again.rows.tolist() == [i for i in range(30) if i != 2]


def test_a_damaged_cache_file_is_built_anew(paths, tmp_path):
    expected = opened(paths).images[torch.arange(30)]
    (status,) = (tmp_path / "cache").rglob("status.u8")
    status.write_bytes(b"\1")
    assert torch.equal(opened(paths).images[torch.arange(30)], expected)


def test_a_disk_is_never_filled(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path))
    assert cache.choose("auto", 10**18, tmp_path / "a") == "stream"
    assert cache.choose("auto", 10**8, tmp_path / "a") == "disk"
    with pytest.raises(UsageError, match="UNSWAYED_CACHE"):
        cache.choose("disk", 10**18, tmp_path / "a")


def test_a_cache_that_is_there_needs_no_more_room(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    (tmp_path / "a").mkdir()
    assert cache.choose("auto", 2 * 10**6, tmp_path / "a") == "stream"
    (tmp_path / "a" / "pixels.u8").write_bytes(b"1" * 2 * 10**6)
    assert cache.choose("auto", 2 * 10**6, tmp_path / "a") == "disk"


def test_nothing_is_written_into_the_data_folder(paths):
    before = {p: p.stat().st_mtime_ns for p in paths[0].parent.rglob("*")}
    opened(paths)
    opened(paths, "stream")
    assert {p: p.stat().st_mtime_ns for p in paths[0].parent.rglob("*")} == before


def test_more_images_than_the_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1000, "SC_PHYS_PAGES": 2_000_000}.get)
    cache.check_memory(2_000_000_000)
    with pytest.raises(UsageError, match=r"would take 3\.0 GB of memory.*has 2\.0 GB; choose a s"):
        open_images([Path("a.png")] * 1000, 3, (1000, 1000), cache="memory")
    with pytest.raises(UsageError, match=r"choose a smaller data\.size"):
        DATASETS.build("digits", size=600)


@pytest.fixture
def decoded(monkeypatch):
    """The names of all files that are decoded, in order."""
    real, names = cache.decode, []

    def noted(path, *rest):
        names.append(path.name)
        time.sleep(0.002)
        return real(path, *rest)

    monkeypatch.setattr(cache, "decode", noted)
    monkeypatch.setattr(cache, "SHARD", 4)
    monkeypatch.setattr(cache, "CHUNK", 2)
    return names


@pytest.mark.parametrize("kind", ["disk", "stream"])
def test_those_that_build_at_the_same_time_share_the_work(paths, decoded, kind):
    paths[7].write_bytes(b"")
    with ThreadPoolExecutor() as several:
        found = list(several.map(lambda _: opened(paths, kind), range(3)))
    assert sorted(decoded[:30]) == [path.name for path in paths]  # each of them once
    expected = open_images(paths, 3, (16, 16), cache="memory")
    for each in found:
        assert each.bad == expected.bad
        assert torch.equal(each.images[torch.arange(29)], expected.images)


def test_who_waits_does_what_a_dead_process_left(paths, decoded, tmp_path):
    opened(paths[:1])  # the folder of another cache must not matter
    with pytest.MonkeyPatch.context() as patch:

        def dies(*_):
            raise KeyboardInterrupt

        patch.setattr(cache, "decode", dies)
        with pytest.raises(KeyboardInterrupt):
            opened(paths)
    folder = max((tmp_path / "cache").iterdir(), key=lambda each: each.stat().st_mtime)
    done = []
    with FileLock(folder / ".lock-3"):  # held by somebody who will die
        waiting = Thread(target=lambda: done.append(opened(paths)))
        waiting.start()
        while len(set(decoded)) < 26 and waiting.is_alive():
            time.sleep(0.001)
        time.sleep(0.05)
        assert waiting.is_alive()
        assert not done
        assert len(set(decoded)) == 26
    waiting.join()
    expected = open_images(paths, 3, (16, 16), cache="memory").images
    assert torch.equal(done[0].images[torch.arange(30)], expected)


def test_pixels_that_were_lost_are_decoded_again(paths, tmp_path):
    expected = opened(paths).images[torch.arange(30)]
    (pixels,) = (tmp_path / "cache").rglob("pixels.u8")
    pixels.unlink()
    assert torch.equal(opened(paths).images[torch.arange(30)], expected)


def test_pages_that_were_read_are_given_back(paths, monkeypatch):
    images = opened(paths).images
    expected = images[torch.arange(30)]
    monkeypatch.setattr(stores, "HELD", 0)
    assert torch.equal(images[torch.arange(30)], expected)
    assert torch.equal(images[torch.arange(30)], expected)


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 3000])
def test_processes_of_torchrun_decode_every_file_once(tmp_path, dies):
    (tmp_path / "files").mkdir()
    for row in range(3 * cache.SHARD + 100):
        color = (row % 251, row // 251, 7)
        Image.new("RGB", (8, 8), color).save(tmp_path / "files" / f"{row:05d}.bmp")
    log = tmp_path / "log"
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = Path(__file__).with_name("decoding.py")
    environment = {**os.environ, "UNSWAYED_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def build(*words):
        command = [*start, str(script), str(tmp_path / "files"), str(log), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    if dies:
        assert build(str(dies)).returncode
    done = build("0")
    assert done.returncode == 0, done.stderr[-3000:]
    per_row = Counter(line.split()[1] for line in log.read_text().splitlines())
    processes = Counter(line.split()[0] for line in log.read_text().splitlines())
    assert len(per_row) == 3 * cache.SHARD + 100
    again = sum(per_row.values()) - len(per_row)
    assert again <= (2 * cache.CHUNK if dies else 0)  # what both were decoding when one died
    assert dies or min(processes.values()) >= cache.SHARD
