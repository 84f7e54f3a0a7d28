from __future__ import annotations

import json

import pytest
from pictures import class_folders

import unswayed
from exports.examples import decide, digests, trained
from unswayed import UsageError
from unswayed.errors import DamagedFileError
from unswayed.exports.places import digest, placed

SMALL = ("data.size=8", "data.test_fraction=0.97")


@pytest.fixture
def run(tmp_path):
    return trained(tmp_path / "run", *SMALL)


def test_what_was_not_exported_is_never_replaced(run, tmp_path):
    mine = tmp_path / "thesis.csv"
    mine.write_text("years")
    with pytest.raises(UsageError, match=r"thesis\.csv exists and is no export of"):
        unswayed.export(run, mine)
    (tmp_path / "new.changes.csv").write_text("mine")
    with pytest.raises(UsageError, match=r"new\.changes\.csv exists"):
        unswayed.export(run, tmp_path / "new.csv")
    assert not (tmp_path / "new.csv").exists()
    (tmp_path / "link.csv").symlink_to(mine)
    with pytest.raises(UsageError, match=r"link\.csv exists"):
        unswayed.export(run, tmp_path / "link.csv")
    assert mine.read_text() == "years"


def test_an_export_is_replaced_by_its_own_run_unless_somebody_changed_it(run, tmp_path):
    to = tmp_path / "a" / "labels.csv"
    unswayed.export(run, to)
    decide(run, 0, "remove")
    unswayed.export(run, to)
    other = trained(tmp_path / "other", *SMALL)
    with pytest.raises(UsageError, match="is no export of"):
        unswayed.export(other, to)
    to.write_text(to.read_text() + "x,1,,,,\n")
    with pytest.raises(UsageError, match="was changed since it was exported"):
        unswayed.export(run, to)


def test_an_export_inside_the_run_folder_moves_with_it(run, tmp_path):
    unswayed.export(run)
    run.path.rename(tmp_path / "moved")
    moved = unswayed.Run(tmp_path / "moved")
    decide(moved, 0, "remove")
    assert unswayed.export(moved).path == tmp_path / "moved" / "corrected.csv"


def test_the_input_and_its_folder_are_refused(tmp_path, rng):
    photos = class_folders(tmp_path / "photos", rng, {"a": 6, "b": 6})
    folder = trained(tmp_path / "f", "data.name=folder", f"data.path={photos}", "data.size=8")
    (tmp_path / "alias").symlink_to(photos)
    for place in (photos / "new", photos, tmp_path / "alias" / "new"):
        with pytest.raises(UsageError, match=r"lies inside the data folder|is the input itself"):
            unswayed.export(folder, place)
    rows = "".join(f"{name}/00{i}.png,{name}\n" for name in "ab" for i in range(6))
    table = photos / "labels.csv"
    table.write_text(f"path,label\n{rows}")
    words = ("data.name=manifest", f"data.path={table}", "data.size=8")
    manifest = trained(tmp_path / "m", *words)
    with pytest.raises(UsageError, match=r"is the input itself, data\.path"):
        unswayed.export(manifest, table)


def test_a_failure_leaves_nothing_behind(run, tmp_path):
    before = digests(tmp_path)

    def fail():
        with placed(run, tmp_path / "new") as new:
            new.mkdir()
            (new / "half").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert digests(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_crash_before_the_renaming_is_harmless(run, tmp_path, monkeypatch):
    to = tmp_path / "labels.csv"
    unswayed.export(run, to)
    old = to.read_bytes()
    decide(run, 0, "remove")
    with monkeypatch.context() as patched:
        patched.setattr("unswayed.exports.places._rename", lambda *_: exit("killed"))
        with pytest.raises(SystemExit):
            unswayed.export(run, to)
    assert to.read_bytes() == old
    unswayed.export(run, to)
    assert to.read_bytes() != old


def test_damaged_records_are_named(run):
    (run.path / "exports.json").write_text("[1")
    with pytest.raises(DamagedFileError, match=r"exports\.json is damaged"):
        unswayed.export(run, run.path / "new.csv")
    (run.path / "exports.json").write_text(json.dumps({"a": 1}))
    (run.path / "x.csv").write_text("")
    with pytest.raises(DamagedFileError, match=r"exports\.json is damaged"):
        unswayed.export(run, run.path / "x.csv")


def test_a_digest_has_names_links_and_content(tmp_path):
    def tree(name, **files):
        for file, text in files.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).write_text(text)
        return digest(tmp_path / name)

    found = [tree("a", x="1"), tree("b", x="2"), tree("c", y="1"), tree("d", x="1", y="")]
    assert len(set(found)) == 4
    assert tree("e", x="1") == found[0]
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "x").symlink_to(tmp_path / "a" / "x")
    assert digest(tmp_path / "f") not in found
