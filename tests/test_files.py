from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from common import PeakMemory
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from unswayed import files
from unswayed.errors import DamagedFileError, UnwritableFileError


def test_tensors_and_note_come_back(tmp_path):
    tensors = {"a": torch.randn(2, 3).T, "b": torch.tensor(5), "c": torch.empty(0)}
    files.write_tensors(tmp_path / "x.safetensors", tensors, {"epoch": 3, "words": ["ä", 1.5]})
    found, note = files.read_tensors(tmp_path / "x.safetensors")
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert note == {"epoch": 3, "words": ["ä", 1.5]}


@pytest.mark.parametrize("where", [10, 200, -1])
def test_a_flipped_bit_is_noticed(tmp_path, where):
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, {"a": torch.zeros(100)}, {"epoch": 3})
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"x\.safetensors is damaged"):
        files.read_tensors(path)


def test_any_byte_of_a_header_may_change(tmp_path):
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, {"a": torch.zeros(2)}, {"epoch": 3, "word": "ä"})
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    noticed = 0
    for where in range(header):
        for fresh in b'"\\{0\xff':
            path.write_bytes(content[:where] + bytes([fresh]) + content[where + 1 :])
            try:
                assert files.read_tensors(path)[1] == {"epoch": 3, "word": "ä"}
            except DamagedFileError:
                noticed += 1
    assert noticed > 4 * header


def test_tensors_of_every_kind_are_read_by_others(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors = {str(kind): torch.ones(3, dtype=kind) for kind in files.DTYPES}
    files.write_tensors(path, {**tensors, "ü": torch.zeros(0, 2)}, {})
    found = load_file(path)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert found["ü"].shape == (0, 2)


@pytest.mark.parametrize("length", [0, 7, 100, -4])
def test_a_truncated_file_is_noticed(tmp_path, length):
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, {"a": torch.zeros(100)}, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedFileError):
        files.read_tensors(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    files.write_json(path, {"old": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnwritableFileError, match=r"x\.json cannot be written: No space"):
        files.write_json(path, {"new": 2})
    assert path.read_text() == '{\n  "old": 1\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_line_that_a_crash_cut_short_is_left_out(tmp_path):
    path = tmp_path / "m.jsonl"
    files.append_json_line(path, {"epoch": 0})
    with path.open("a") as file:
        file.write('{"epoch": 1, "te')
    assert files.read_json_lines(path) == [{"epoch": 0}]
    assert files.read_json_lines(tmp_path / "none.jsonl") == []
    path.write_bytes(b'{"epoch": 0}\n{"ep\xff')
    assert files.read_json_lines(path) == [{"epoch": 0}]
    path.write_bytes(b'{"ep\xff\n{"epoch": 0}\n')
    with pytest.raises(DamagedFileError, match="line 1"):
        files.read_json_lines(path)


def test_rows_can_be_written_a_few_at_a_time(tmp_path):
    x, y = torch.randn(7, 3).half(), torch.arange(5)
    with files.writing(
        tmp_path / "a.safetensors",
        {"x": files.Shape(x.dtype, (7, 3)), "y": files.Shape(y.dtype, (5,))},
        {"epoch": 1},
    ) as append:
        append("x", x[:4])
        append("y", y)
        append("x", x[4:])
    files.write_tensors(tmp_path / "b.safetensors", {"y": y, "x": x}, {"epoch": 1})
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_other_software_reads_the_file_and_would_write_the_same(tmp_path):
    tensors = {"b": torch.randn(3, 2), "a": torch.randn(5), "c": torch.tensor(1.0)}
    files.write_tensors(tmp_path / "ours.safetensors", tensors, {"ä": 1})
    with safe_open(tmp_path / "ours.safetensors", framework="pt") as file:
        header = file.metadata()
    found = load_file(tmp_path / "ours.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    save_file(tensors, tmp_path / "theirs.safetensors", metadata=header)
    ours, theirs = (tmp_path / f"{name}.safetensors" for name in ("ours", "theirs"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_tensor_that_is_not_complete_leaves_no_file(tmp_path):
    shape = {"x": files.Shape(torch.float32, (3,))}
    with (
        pytest.raises(ValueError, match="x is not complete"),
        files.writing(tmp_path / "x.safetensors", shape, {}) as append,
    ):
        append("x", torch.zeros(2))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_a_tensor_of_64_mb_is_written_in_the_memory_of_a_part(tmp_path):
    part = torch.ones(2**18)
    peak = PeakMemory()
    with files.writing(
        tmp_path / "x.safetensors", {"x": files.Shape(torch.float32, (64, 2**18))}, {}
    ) as append:
        for _ in range(64):
            append("x", part)
    assert peak.megabytes() < 40
    assert files.read_tensors(tmp_path / "x.safetensors")[0]["x"].sum() == 2**24
