from __future__ import annotations

import codecs
import io
import os
import pickle

import numpy as np
import pytest

from unswayed import UsageError
from unswayed.data.unpickle import unpickle


class Evil:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back_as_numpy_itself_reads_them(protocol, dtype, order, rng):
    array = np.asarray(rng.integers(0, 2, (3, 4)), dtype=dtype, order=order)
    written = {b"data": array, "words": ["a", b"b", 3, None], 5: [array]}
    read = unpickle(pickle.dumps(written, protocol), "x")
    assert read["words"] == written["words"]
    for found in (read[b"data"], read[5][0]):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_old_module_names_are_known():
    data = pickle.dumps(np.arange(3), 2)
    old = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert unpickle(old, "x").tolist() == [0, 1, 2]


def test_strings_of_python_2_are_bytes():
    assert unpickle(b"\x80\x02}U\x04dataK\x07s.", "x") == {b"data": 7}


def test_a_program_is_refused_and_does_not_run(tmp_path):
    trace = tmp_path / "ran"
    for evil in (
        Evil(os.system, f"touch {trace}"),
        Evil(eval, f"open({str(trace)!r}, 'w')"),
        {b"data": [Evil(open, str(trace), "w")]},
        Evil(np.fromfile, str(trace)),
        Evil(np.load, str(trace)),
    ):
        with pytest.raises(UsageError, match=r"batch_1 is not a readable pickle.*refused"):
            unpickle(pickle.dumps(evil, 2), "batch_1")
    assert not trace.exists()


def test_memory_is_not_described_by_the_file():
    """NumPy's own reader would take these eight bytes for the address of an object."""
    honest = pickle.dumps(np.array([1], dtype="i8"), 3)
    forged = honest.replace(b"i8", b"O8")
    assert forged != honest
    with pytest.raises(UsageError, match="raw memory"):
        unpickle(forged, "x")


@pytest.mark.parametrize(
    "value",
    [np.zeros(2), np.array(["a"]), np.zeros(1, "datetime64[s]"), np.zeros(1, [("a", "O")])],
)
def test_other_arrays_are_refused(value):
    with pytest.raises(UsageError, match="not expected"):
        unpickle(pickle.dumps(value, 2), "x")


def test_other_encodings_are_refused():
    with pytest.raises(UsageError, match="'rot13' is not expected"):
        unpickle(pickle.dumps(Evil(codecs.encode, "a", "rot13"), 2), "x")


@pytest.mark.parametrize("cut", [0, 1, 20, 100])
def test_a_damaged_pickle_is_named(cut):
    data = pickle.dumps({"a": np.arange(100)}, 2)
    with pytest.raises(UsageError, match="batch_1 is not a readable pickle"):
        unpickle(io.BytesIO(data[:cut]), "batch_1")
