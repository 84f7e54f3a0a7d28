from __future__ import annotations

import pytest

from unswayed import UsageError
from unswayed.bench.published import Published

TABLE = """\
title = "A table"
source = "Somebody, table 1"
runs = 5
columns = ["clean", "sym 40"]

[last]
ce = [[90.0, 1.0], []]
gce = [[90.0, 91.0, 92.0], [80.0]]
"""


def write(folder, text):
    path = folder / "others.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_two_numbers_are_mean_and_deviation_and_others_are_runs(tmp_path):
    table = Published.load(write(tmp_path, TABLE))
    ce, gce = table.get("last", "ce", "clean"), table.get("last", "gce", "clean")
    assert (ce.mean, ce.deviation, ce.n) == pytest.approx((0.90, 0.01, 5))
    assert (gce.mean, gce.deviation, gce.n) == pytest.approx((0.91, 0.01, 3))
    assert table.get("last", "gce", "sym 40").n == 1
    assert table.get("last", "ce", "sym 40") is None
    assert table.get("oracle_best", "ce", "clean") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "Somebody, table 1"\n', "", "needs the option 'source'"),
        ("runs = 5", "run = 5", "did you mean 'runs'"),
        ("runs = 5", "runs = 0", "'runs' is 0"),
        ("[[90.0, 1.0], []]", "[[90.0, 1.0]]", "'ce' has 1 entries, not 2"),
        ("[last]", "[last", "cannot be read"),
    ],
)
def test_a_mistake_is_named_with_the_file(tmp_path, old, new, message):
    path = write(tmp_path, TABLE.replace(old, new))
    with pytest.raises(UsageError, match=rf"published table .*others\.toml.*{message}"):
        Published.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.toml cannot be read"):
        Published.load(tmp_path / "none.toml")
