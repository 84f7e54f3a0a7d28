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


def test_an_id_may_not_stand_in_train_and_in_test(root):
    rows = [*ROWS, {**ROWS[0], "split": "test"}]
    rows = [{"split": "", **row} for row in rows]
    with pytest.raises(UsageError, match=r"row 7: the id 'images/000\.png' stands there twice"):
        load(write(root, rows, ".jsonl"))


def test_a_link_may_lead_to_a_file_below_the_root_only(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (root / "images" / "in.png").symlink_to(root / "images" / "000.png")
    rows = [*ROWS, {"path": "images/in.png", "label": "cat"}]
    assert len(load(write(root, rows, ".csv")).train) == 7
    (root / "images" / "001.png").rename(outside / "001.png")
    for name, target in (("out.png", outside / "001.png"), ("folder", outside)):
        (root / "images" / name).symlink_to(target)
        path = "images/out.png" if name == "out.png" else "images/folder/001.png"
        with pytest.raises(UsageError, match=f"row 7: '{path}' leaves the folder"):
            load(write(root, [*ROWS, {"path": path, "label": "cat"}], ".csv"))


@pytest.mark.parametrize(
    "written", ["./images/000.png", "images//000.png", "images/../images/000.png"]
)
def test_a_path_may_be_written_in_other_ways(root, written):
    train = load(write(root, [{"path": written, "label": "cat"}, *ROWS[1:]], ".csv")).train
    assert train.ids[0] == written
    assert len(train) == 6
    assert not train.skipped


def test_a_path_may_be_absolute(root):
    whole = str(root / "images" / "000.png")
    train = load(write(root, [{"path": whole, "label": "cat"}, *ROWS[1:]], ".csv")).train
    assert train.ids[0] == whole
    assert train.files.paths == [row["path"] for row in ROWS]


def test_a_parquet_file_is_read_a_part_at_a_time(root, monkeypatch):
    monkeypatch.setattr("unswayed.data.tables.BATCH", 4)
    rows = [{**row, "bytes": b"of another column"} for row in ROWS]
    assert load(write(root, rows, ".parquet")).train.ids == [row["path"] for row in ROWS]
