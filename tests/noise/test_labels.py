from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import UsageError
from unswayed.noise.labels import LabelFile, encode, read

LABELS = LabelFile(
    ids=("train/0", 'a,"b"', "ö\n2"),
    before=np.array([0, 1, 1]),
    given=np.array([1, 1, 0]),
    classes=("cat", "dog, big"),
    convention="made for this test – by hand",
    seed=2**70,
    expected=np.array([[0.5, 0.5], [0.25, 0.75]]),
)


def same(a, b):
    arrays = ("before", "given", "expected")
    plain = ("ids", "classes", "convention", "seed")
    return all(getattr(a, n) == getattr(b, n) for n in plain) and all(
        np.array_equal(getattr(a, n), getattr(b, n)) for n in arrays
    )


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_what_is_written_is_read(suffix, tmp_path):
    path = tmp_path / f"labels{suffix}"
    path.write_bytes(encode(LABELS, suffix))
    assert same(read(path), LABELS)
    assert encode(read(path), suffix) == path.read_bytes()


@given(data=st.data(), n=st.integers(1, 30), k=st.integers(2, 5))
def test_any_labels_survive_both_formats(data, n, k, tmp_path_factory):
    letters = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    ids = data.draw(st.lists(letters, min_size=n, max_size=n, unique=True))
    vectors = st.lists(st.integers(0, k - 1), min_size=n, max_size=n).map(np.array)
    labels = LabelFile(
        ids=tuple(ids),
        before=data.draw(vectors),
        given=data.draw(vectors),
        classes=tuple(map(str, range(k))),
        convention="any",
        seed=data.draw(st.integers(0)),
        expected=np.full((k, k), 1 / k),
    )
    for suffix in (".npz", ".csv"):
        path = tmp_path_factory.mktemp("labels") / f"x{suffix}"
        path.write_bytes(encode(labels, suffix))
        assert same(read(path), labels)


def test_rates_are_measured():
    rate, matrix = LABELS.realised()
    assert rate == pytest.approx(2 / 3)
    assert matrix.tolist() == [[0, 1], [0.5, 0.5]]
    assert LABELS.expected_rate() == pytest.approx((0.5 + 0.25 + 0.25) / 3)


def test_other_programs_can_read_both(tmp_path):
    (tmp_path / "x.npz").write_bytes(encode(LABELS, ".npz"))
    with np.load(tmp_path / "x.npz", allow_pickle=False) as arrays:
        assert arrays["given"].tolist() == [1, 1, 0]
        assert arrays["rate"] == pytest.approx(2 / 3)
        assert str(arrays["convention"]) == LABELS.convention
    head, _, rest = encode(LABELS, ".csv").decode().partition("\n")
    assert json.loads(head.removeprefix("# "))["matrix"] == [[0, 1], [0.5, 0.5]]
    assert next(csv.DictReader(rest.splitlines())) == {"id": "train/0", "before": "0", "given": "1"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"given": np.array([1, 2, 0])}, "label 2 in 'given' is not one of its 2 classes"),
        ({"before": np.array([0, -1, 0])}, "label -1 in 'before'"),
        ({"before": np.array([0, 1])}, "one 64-bit integer per id"),
        ({"given": np.array([0.0, 1.0, 1.0])}, "one 64-bit integer per id"),
        ({"ids": ("a", "a", "b")}, "twice"),
        ({"ids": (), "given": np.zeros(0, int), "before": np.zeros(0, int)}, "no labels"),
        ({"expected": np.eye(3)}, "not 2 × 2"),
    ],
)
def test_labels_that_cannot_be_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        replace(LABELS, **change)


def test_another_suffix_is_an_error(tmp_path):
    with pytest.raises(UsageError, match=r"\.npz or \.csv"):
        encode(LABELS, ".json")
    with pytest.raises(UsageError, match=r"\.npz or \.csv"):
        read(tmp_path / "x.txt")


GOOD = encode(LABELS, ".csv").decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line"),
        ("id,before,given\na,0,1\n", "first line"),
        ("# {broken\nid,before,given\n", "not a readable label file"),
        ("# {}\nid,before,given\na,0,1\n", "has no 'format'"),
        (GOOD.replace("labels 1", "labels 2"), "format is 'unswayed labels 2'"),
        (GOOD.replace('"before","given"', "given,before"), "columns"),
        (GOOD.replace('"train/0",0,1', "train/0,0"), "columns"),
        (GOOD.replace('"train/0",0,1', "train/0,0,cat"), "not a readable label file"),
        (GOOD.replace('"train/0",0,1', "train/0,0,7"), "label 7"),
    ],
)
def test_a_damaged_table_is_an_error_that_names_the_file(text, message, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_damaged_or_foreign_archive_is_an_error(tmp_path):
    path = tmp_path / "labels.npz"
    with pytest.raises(UsageError, match="no label file"):
        read(path)
    good = encode(LABELS, ".npz")
    for content in (b"", b"junk", good[: len(good) // 2]):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="not a readable label file"):
            read(path)
    np.savez(path, given=np.zeros(3, int))
    with pytest.raises(UsageError, match="has no 'ids'"):
        read(path)
    np.savez(path, ids=np.array([{}], dtype=object))
    with pytest.raises(UsageError, match="not a readable label file"):
        read(path)
