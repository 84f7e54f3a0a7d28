from __future__ import annotations

import json

import pytest
from pictures import class_folders

from unswayed import UsageError
from unswayed.data import DATASETS


@pytest.fixture
def root(tmp_path, rng):
    return class_folders(tmp_path, rng, {"images": 6})


def write(root, rows, suffix):
    path = root / f"table{suffix}"
    if suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    elif suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        columns = list(rows[0])
        lines = [",".join(columns), *(",".join(str(row[c]) for c in columns) for row in rows)]
        path.write_text("\n".join(lines))
    return path


def load(path, **options):
    return DATASETS.build("manifest", path=str(path), **{"size": 8, **options})


ROWS = [{"path": f"images/00{i}.png", "label": ("cat", "dog")[i % 2]} for i in range(6)]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_tables_of_every_kind(root, suffix):
    rows = [
        {**row, "true_label": "cat", "split": "test" if i > 3 else "train", "id": f"s{i}"}
        for i, row in enumerate(ROWS)
    ]
    train, test = load(write(root, rows, suffix))
    assert train.classes == ("cat", "dog")
    assert train.ids == ("s0", "s1", "s2", "s3")
    assert train.given.tolist() == [0, 1, 0, 1]
    assert train.true.tolist() == [0, 0, 0, 0]
    assert test.ids == ("s4", "s5")


def test_hugging_faces_column_name_and_own_classes(root):
    rows = [{"file_name": row["path"], "label": row["label"]} for row in ROWS]
    train, test = load(write(root, rows, ".csv"), classes=("dog", "cat", "bird"))
    assert train.classes == ("dog", "cat", "bird")
    assert train.given.tolist() == [1, 0, 1, 0, 1, 0]
    assert train.ids[0] == "images/000.png"
    assert test is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"pth": "x", "label": "a"}], "no column 'path'.*did you mean 'path'"),
        ([{"path": "x", "lable": "a"}], "no column 'label'"),
        (
            [{"file": "x", "class": "a"}],
            r"own columns are: file, class\. Accepted are: path or file_name or image; label; "
            "and where known true_label, split, id$",
        ),
        ([{"path": "../x.png", "label": "a"}], "row 1: '../x.png' leaves the folder"),
        ([{"path": "/etc/passwd", "label": "a"}], "leaves the folder"),
        ([ROWS[0], ROWS[1], ROWS[0]], "row 3: the id 'images/000.png' stands there twice"),
        ([{"path": "", "label": "a"}], "row 1: the path or the label is empty"),
        ([{**ROWS[0], "label": ""}], "empty"),
        ([{**ROWS[0], "split": "holdout"}], "the split 'holdout' is none of"),
        ([{**ROWS[0], "split": "test"}], "no rows for training"),
        (
            [{**ROWS[0], "true_label": "cat"}, {**ROWS[1], "true_label": ""}],
            "row 2: some rows have a true_label",
        ),
    ],
)
def test_a_bad_row_is_named(root, rows, message):
    with pytest.raises(UsageError, match=message):
        load(write(root, rows, ".csv"))


def test_unknown_labels_are_named(root):
    with pytest.raises(UsageError, match=r"unknown label 'dog'.*'dogs'"):
        load(write(root, ROWS, ".csv"), classes=("cat", "dogs"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x", "none of .csv"),
        ("a.csv", b"", "no column"),
        ("a.csv", b"path,label\nx,a,b,c\n", "row 1: it has not as many columns"),
        ("a.csv", b"path,label\nx\n", "row 1: it has not as many columns"),
        ("a.csv", b"\xff\xfe\x80", "cannot be read"),
        ("a.jsonl", b"{", "row 1: it is not JSON"),
        ("a.jsonl", b"[1]", "row 1: it is not an object"),
        ("a.parquet", b"PAR1 broken", "cannot be read"),
    ],
)
def test_a_broken_table_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load(tmp_path / name)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*a\.csv"):
        load(tmp_path / "a.csv")


def test_missing_images_are_listed_like_broken_ones(root):
    rows = [*ROWS, {"path": "images/gone.png", "label": "cat"}]
    train = load(write(root, rows, ".csv"), max_bad=0.2).train
    assert list(train.skipped) == ["images/gone.png"]
