from __future__ import annotations

import os

import pytest
import torch

from unswayed import files
from unswayed.errors import DamagedFileError


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
    with pytest.raises(OSError, match="No space"):
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
