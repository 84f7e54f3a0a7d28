from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import class_folders, picture

import unswayed
from exports.examples import decide, digests, next_recipe, trained
from unswayed import Dataset, UsageError
from unswayed.data import DATASETS
from unswayed.exports.tables import _csv, _json_lines

HOSTILE = ("<img src=x onerror=hit()>", "\"it's\" = 'x'", "\u202eevil", "[bold]", "a, b")


@pytest.fixture
def photos(tmp_path, rng):
    return class_folders(tmp_path / "photos", rng, {"images": 24})


def rows_of(labels=("cat", "dog", "fox")):
    """Return 20 training rows and 4 for testing; ids are numbers, notes are odd."""
    return [
        {
            "note": HOSTILE[i % 5],
            "path": f"images/0{i:02d}.png",
            "label": labels[i % 3],
            "split": "test" if i >= 20 else "train",
            "id": f"s{i}",
        }
        for i in range(24)
    ]


def trained_on(file, tmp_path, *words):
    run = trained(
        tmp_path / "run", "data.name=manifest", f"data.path={file}", "data.size=8", *words
    )
    decide(run, 0, "relabel", run.provenance.data.classes[2])
    decide(run, 3, "remove")
    return run


def loaded(exported):
    return next_recipe(exported).build("data")


def check_round_trip(run, exported):
    """Compare what was exported with what the run was trained on."""
    before, after = run.data(), loaded(exported)
    kept = [row for row in range(len(before.train)) if row != 3]
    assert after.train.classes == before.train.classes
    assert after.train.ids == tuple(before.train.ids[row] for row in kept)
    expected = before.train.given.copy()
    expected[0] = 2
    assert after.train.given.tolist() == expected[kept].tolist()
    assert np.array_equal(after.train.images, before.train.images[kept])
    assert after.test.fingerprint() == before.test.fingerprint()


def test_only_changed_lines_of_a_csv_differ(photos, tmp_path):
    text = "\ufeffnote,path,label,split,id\r\n" + "".join(
        f'"{row["note"].replace(chr(34), chr(34) * 2)}\n!",{row["path"]},"{row["label"]}",'
        f"{row['split']},{row['id']}\r\n"
        for row in rows_of()
    )
    file = photos / "labels.csv"
    file.write_bytes(text.encode())
    before = digests(photos)
    run = trained_on(file, tmp_path)
    found = unswayed.export(run)
    assert found.path == run.path / "corrected-manifest.csv"
    old, new = (f.read_bytes().split(b"\r\n") for f in (file, found.path))
    assert len(new) == len(old) - 1
    assert new[0] == old[0]
    assert new[1] == old[1].replace(b'"cat"', b"fox")
    assert new[2:] == old[2:4] + old[5:]
    assert digests(photos) == before
    check_round_trip(run, found)
    changes = list(csv.DictReader(found.changes.read_text().splitlines()))
    assert [(c["id"], c["old_label"], c["new_label"], c["what"]) for c in changes] == [
        ("s0", "cat", "fox", "relabel"),
        ("s3", "cat", "", "remove"),
    ]


def test_a_tsv_without_ids_and_without_a_last_line_break(photos, tmp_path):
    rows = rows_of()[:9]
    text = "path\tlabel\n" + "\n".join(f"{row['path']}\t{row['label']}" for row in rows)
    (photos / "labels.tsv").write_text(text)
    run = trained_on(photos / "labels.tsv", tmp_path)
    decide(run, 8, "relabel", "cat")
    found = unswayed.export(run, tmp_path / "elsewhere" / "mine.tsv")
    lines = text.splitlines(keepends=True)
    expected = [lines[0], "images/000.png\tfox\n", *lines[2:4], *lines[5:9], "images/008.png\tcat"]
    assert found.path.read_text() == "".join(expected)
    assert loaded(found).train.ids[0] == "images/000.png"


def test_only_the_label_of_a_json_line_differs(photos, tmp_path):
    rows = [{**row, "label": n % 3, "size": 1.10} for n, row in enumerate(rows_of())]
    lines = [json.dumps(row).replace("1.1", "1.10").replace(": ", " :  ") for row in rows]
    lines[0] = lines[0].replace('"label" :  0', '"label": 9, "label" :  0')  # the last one counts
    file = photos / "labels.jsonl"
    file.write_text("\n\n".join(lines) + "\n")
    run = trained_on(file, tmp_path)
    found = unswayed.export(run)
    new = found.path.read_text().split("\n\n")
    assert new[0] == lines[0].replace('"label" :  0', '"label" :  2')
    assert [line.strip() for line in new[1:]] == lines[1:3] + lines[4:]
    check_round_trip(run, found)


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_parquet_keeps_types_and_notes(photos, tmp_path, dictionary):
    rows = rows_of()
    table = pyarrow.Table.from_pylist([{**row, "size": None} for row in rows])
    kind = pyarrow.dictionary(pyarrow.int8(), pyarrow.string()) if dictionary else pyarrow.int16()
    labels = [row["label"] if dictionary else n % 3 for n, row in enumerate(rows)]
    place = table.column_names.index("label")
    field = pyarrow.field("label", kind, metadata={"about": "mine"})
    table = table.set_column(place, field, pyarrow.array(labels, kind))
    table = table.replace_schema_metadata({"made": "by hand"})
    pyarrow.parquet.write_table(table, photos / "labels.parquet")
    run = trained_on(photos / "labels.parquet", tmp_path)
    found = unswayed.export(run)
    new = pyarrow.parquet.read_table(found.path)
    assert new.schema.equals(table.schema, check_metadata=True)
    expected = table.to_pylist()
    expected[0]["label"] = "fox" if dictionary else 2
    assert new.to_pylist() == expected[:3] + expected[4:]
    check_round_trip(run, found)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from("abc")), max_size=8, unique_by=lambda r: r[0]),
    st.dictionaries(st.integers(0, 7), st.sampled_from(["a", "b", None])),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\r\n", "\n"]),
    st.sampled_from([",", "\t"]),
)
def test_any_csv_keeps_what_does_not_change(rows, wanted, quoting, end, delimiter):
    rows = [(f"p{name}", note, label) for name, note, label in rows]
    text = io.StringIO(newline="")
    style = {"delimiter": delimiter, "quoting": quoting, "lineterminator": "\r\n"}
    for row in [("path", "note", "label"), *rows]:
        line = io.StringIO(newline="")
        csv.writer(line, **style).writerow(row)
        text.write(line.getvalue()[:-2] + end)
    labels = {row[0]: row[2] for row in rows}
    labels |= {rows[n][0]: label for n, label in wanted.items() if n < len(rows)}
    new = "".join(_csv(io.StringIO(text.getvalue(), newline=""), labels, delimiter))
    found = list(csv.reader(io.StringIO(new, newline=""), delimiter=delimiter))[1:]
    assert found == [[*row[:2], labels[row[0]]] for row in rows if labels[row[0]] is not None]
    if all(labels[row[0]] == row[2] for row in rows):
        assert new == text.getvalue()


@given(st.lists(st.dictionaries(TEXT, st.one_of(TEXT, st.floats(), st.none())), max_size=5))
def test_any_json_line_keeps_what_does_not_change(notes):
    rows = [{**note, "path": f"p{n}", "label": "a"} for n, note in enumerate(notes)]
    rows = [{k: v for k, v in row.items() if k not in ("id", "split")} for row in rows]
    lines = [json.dumps(row) + "\n" for row in rows]
    labels = {f"p{n}": ("a", '"b"', None)[n % 3] for n in range(len(rows))}
    new = "".join(_json_lines(lines, labels, "")).splitlines(keepends=True)
    expected = [
        line.replace('"label": "a"', '"label": "\\"b\\""') if n % 3 == 1 else line
        for n, line in enumerate(lines)
        if n % 3 < 2
    ]
    assert new == expected


def test_exporting_again_changes_nothing(photos, tmp_path):
    for suffix in (".csv", ".parquet"):
        file = photos / f"labels{suffix}"
        table = pyarrow.Table.from_pylist(rows_of())
        if suffix == ".csv":
            table.to_pandas().to_csv(file, index=False)
        else:
            pyarrow.parquet.write_table(table, file)
        run = trained_on(file, tmp_path / suffix)
        found = unswayed.export(run)
        before, stamp = digests(run.path), found.path.stat().st_mtime_ns
        unswayed.export(run)
        assert found.path.stat().st_mtime_ns == stamp
        assert digests(run.path) == before


def test_a_table_that_somebody_worked_on_since_is_refused(photos, tmp_path):
    file = photos / "labels.csv"
    rows = [{"path": row["path"], "label": row["label"]} for row in rows_of()]
    text = "path,label\n" + "".join(f"{row['path']},{row['label']}\n" for row in rows)
    file.write_text(text)
    run = trained_on(file, tmp_path)
    for changed in (
        text.replace("images/001.png,dog", "images/001.png,cat"),
        text.replace("images/001.png,dog\n", ""),
        text.replace("path,label\n", "path,label\nimages/new.png,cat\n"),
    ):
        file.write_text(changed)
        with pytest.raises(UsageError, match=r"the data have changed since .*images/(001|new)"):
            unswayed.export(run)
    assert unswayed.export(run, format="labels").path.is_file()


def test_a_class_that_loses_all_its_images_stays_a_class(photos, tmp_path):
    rows = [("a", i) for i in range(9)] + [("b", i) for i in range(9, 18)] + [("c", 18)]
    text = "path,label\n" + "".join(f"images/0{i:02d}.png,{label}\n" for label, i in rows)
    (photos / "labels.csv").write_text(text)
    words = ("data.name=manifest", f"data.path={photos / 'labels.csv'}", "data.size=8")
    run = trained(tmp_path / "run", *words)
    decide(run, 18, "relabel", "a")
    found = unswayed.export(run)
    assert 'data.classes=["a", "b", "c"]' in found.next
    assert loaded(found).train.classes == ("a", "b", "c")


@pytest.mark.parametrize("format", ["manifest", "metadata"])
def test_a_folder_becomes_a_table(tmp_path, rng, format):
    photos = tmp_path / "photos"
    for part, count in (("train", 9), ("test", 2)):
        class_folders(photos / part, rng, dict.fromkeys(("cat", "dog", "fox"), count))
    odd = photos / "train" / "cat" / '0 "quoted", two\nlines\u202e.png'
    picture(rng).save(odd)
    run = trained(tmp_path / "run", "data.name=folder", f"data.path={photos}", "data.size=8")
    decide(run, 0, "relabel", "fox")
    decide(run, 3, "remove")
    found = unswayed.export(run, format=format)
    check_round_trip(run, found)
    heading = found.path.read_text().splitlines()[0]
    assert heading == f"{'path' if format == 'manifest' else 'file_name'},label,id,split"


def test_a_second_round_leaves_out_what_the_first_one_did(photos, tmp_path):
    file = photos / "labels.csv"
    text = "path,label\n" + "".join(f"{row['path']},{row['label']}\n" for row in rows_of())
    file.write_text(text)
    first = trained_on(file, tmp_path)
    labels = unswayed.export(first, format="labels")
    words = ("data.name=manifest", f"data.path={file}", "data.size=8")
    second = trained(tmp_path / "second", *words, f"data.corrected={labels.path}")
    decide(second, 1, "relabel", "cat")
    found = unswayed.export(second)
    assert found.path.read_text() == text.replace("000.png,cat", "000.png,fox").replace(
        "images/003.png,cat\n", ""
    ).replace("001.png,dog", "001.png,cat")
    assert "data.corrected=" in found.next.split()
    assert loaded(found).train.given[:3].tolist() == [2, 0, 2]
    again = unswayed.export(second, tmp_path / "again.csv", format="labels")
    data = DATASETS.build("manifest", path=str(file), size=8, corrected=str(again.path)).train
    assert isinstance(data, Dataset)
    assert len(data) == 23
    assert data.given[:3].tolist() == [2, 0, 2]
