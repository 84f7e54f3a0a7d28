"""`torchrun -m unswayed train`: run folders, resuming with other numbers of processes, mistakes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch

from unswayed import Run, UsageError, processes, train
from unswayed.files import read_tensors

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
TRAIN = (
    "train",
    "digits",
    "data.size=8",
    "model.width=4",
    "framework.projector_widths=[16,16]",
    "framework.predictor_hidden=8",
    "train.epochs=3",
    "train.batch_size=128",
    "train.threads=1",
)
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(number, *words):
    start = [*TORCHRUN, str(number)] if number > 1 else [sys.executable]
    return [*start, "-m", "unswayed", *words]


def unswayed(number, *words, code=0):
    done = subprocess.run(
        command(number, *words), capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    if code is not None:
        assert (done.returncode == 0) == (code == 0), done.stderr[-3000:]
    return done


def stopped(number, folder, words, *, after, how=signal.SIGTERM):
    """Start a training, and send a signal to its last process once so many epochs are done."""
    running = subprocess.Popen(
        command(number, *words), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    metrics, until = folder / "metrics.jsonl", time.monotonic() + 120
    while not metrics.is_file() or len(metrics.read_text().splitlines()) < after:
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.02)
    target = running.pid if number == 1 else children(running.pid)[-1]
    os.kill(target, how)
    return running.communicate(timeout=120)[1]


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def weights(folder):
    return read_tensors(folder / "model.safetensors")[0]


def apart(one, other):
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return max(float((a[k].double() - b[k].double()).abs().max()) for k in a)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train(*TRAIN[1:], run=tmp_path_factory.mktemp("alone") / "run").path


def test_two_processes_fill_one_run_folder(tmp_path, alone):
    folder = tmp_path / "run"
    done = unswayed(2, *TRAIN, "--run-folder", str(folder))
    assert done.stdout.count(str(folder)) == 1  # one process speaks
    run, one = Run(folder), Run(alone)
    assert run.provenance.hardware.processes == 2
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in alone.iterdir())
    assert torch.allclose(run.predictions().logits, one.predictions().logits, atol=2e-2)
    assert run.records().loss.isnan().equal(one.records().loss.isnan())
    assert run.summary.flops == pytest.approx(one.summary.flops, rel=0.01)
    assert apart(folder, alone) < 1e-2  # 30 steps in single precision


@pytest.mark.slow
def test_mistakes_are_told_once(tmp_path):
    done = unswayed(3, *TRAIN, "train.batch_size=2", "--run-folder", str(tmp_path / "a"), code=2)
    told = [line for line in done.stderr.splitlines() if line.startswith("unswayed:")]
    assert len(told) == 1
    assert "a batch of 2 images is too small for 3 processes" in told[0]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("minutes", ["soon", "0", "-1", "nan", "1e9"])
def test_patience_is_a_number_of_minutes(monkeypatch, minutes):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv(processes.PATIENCE, minutes)
    with pytest.raises(UsageError, match=f"UNSWAYED_PATIENCE is '{minutes}'"):
        processes.start()


@pytest.mark.slow
def test_a_run_may_change_its_number_of_processes(tmp_path, alone):
    folder = tmp_path / "run"
    longer = (*TRAIN, "train.epochs=8", "--run-folder")
    unswayed(1, *longer, str(tmp_path / "one"))
    for after, number in ((1, 2), (3, 1), (5, 3)):
        stopped(number, folder, (*longer, str(folder)), after=after)
    unswayed(2, "resume", str(folder))
    known = Run(folder).provenance
    assert [known.hardware.processes, *(each.processes for each in known.resumed)] == [2, 1, 3, 2]
    assert apart(folder, tmp_path / "one") < 2e-2  # 80 steps in single precision


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_three_processes_go_on_to_the_same_bits(tmp_path, how):
    longer = (*TRAIN, "train.epochs=6", "train.checkpoint_minutes=0.001", "--run-folder")
    whole, broken = tmp_path / "whole", tmp_path / "peers"  # a name that gloo's errors hold too
    unswayed(3, *longer, str(whole))
    said = stopped(3, broken, (*longer, str(broken)), after=2, how=how)
    told = [line for line in said.splitlines() if line.startswith("unswayed: ")]
    assert len(told) <= 2
    assert any("nothing is lost" in line for line in told) == (how != signal.SIGKILL)
    assert not Run(broken).finished
    unswayed(3, "resume", str(broken))
    assert apart(whole, broken) == 0


def nodes(*calls, start=("-m", "unswayed"), places=(None, None)):
    """Start one process for each call, as torchrun would on as many machines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": "0"}
    shared |= {"WORLD_SIZE": str(len(calls)), "TORCHELASTIC_RUN_ID": "test"}
    running = [
        subprocess.Popen(
            [sys.executable, *start, *words],
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **shared, "RANK": str(rank)},
            cwd=place,
        )
        for rank, (words, place) in enumerate(zip(calls, places, strict=True))
    ]
    said = "".join(each.communicate(timeout=120)[1] for each in running)
    assert all(each.returncode for each in running), said
    return [line for line in said.splitlines() if line.startswith("unswayed:")]


@pytest.mark.slow
def test_machines_with_different_recipes_are_told_apart(tmp_path):
    words = (*TRAIN, "--run-folder", str(tmp_path / "run"))
    (told,) = nodes(words, (*words, "train.seed=1"))
    assert "process 1 has another recipe" in told


OWN_DATA = """
import os, sys
import numpy as np
from unswayed import Dataset, processes, train
from unswayed.cli import run_safely

processes.start()
images = np.full((40, 8, 8), int(os.environ["RANK"]), dtype=np.uint8)
data = Dataset.from_arrays(images, np.arange(40) % 4)
words = ("digits-ce", "train.epochs=1", "train.batch_size=8", "model.width=4")
processes.leave(run_safely(lambda: int(train(*words, run=sys.argv[1], data=data).finished)))
"""


@pytest.mark.slow
def test_machines_with_different_data_are_told_apart(tmp_path):
    folder = str(tmp_path / "run")
    (told,) = nodes((folder,), (folder,), start=("-c", OWN_DATA))
    assert "process 1 has another training data than process 0" in told


@pytest.mark.slow
def test_machines_that_do_not_share_a_folder_are_told(tmp_path):
    places = [tmp_path / name for name in ("here", "there")]  # one path, two folders
    for place in places:
        place.mkdir()
    words = (*TRAIN, "--run-folder", "run")
    (told,) = nodes(words, words, places=places)
    assert "cannot see the run folder" in told


@pytest.mark.slow
def test_other_verbs_are_for_one_process():
    (told,) = nodes(("list", "losses"), places=(None,))
    assert "unswayed list runs in one process" in told
