from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest
import torch

from unswayed import UsageError
from unswayed.data import DATASETS, Dataset, Splits
from unswayed.data.cifar import CIFAR10, CIFAR100
from unswayed.data.cifarn import HUNDRED, TEN, check_rate, find_labels, read_labels, relabel

CLEAN = np.arange(40) % 10


def images(clean=CLEAN, classes=10):
    data = Dataset.from_arrays(
        np.zeros((len(clean), 8, 8, 3), np.uint8),
        clean,
        classes=[str(k) for k in range(classes)],
        ids=[f"cifar10/train/{i:05d}" for i in range(len(clean))],
    )
    return Splits(data, data)


def ten(clean=CLEAN):
    """Return what CIFAR-10_human.pt holds: NumPy vectors, one more label wrong in each."""
    keys = ["aggre_label", "random_label1", "random_label2", "random_label3", "worse_label"]
    human = {}
    for wrong, key in enumerate(keys, start=1):
        human[key] = clean.copy()
        human[key][:wrong] = (clean[:wrong] + 1) % 10
    return {"clean_label": clean.copy(), **human}


def with_old_names(path):
    """Rewrite a file as NumPy 1 would have written it."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data.replace(b"numpy._core.multi", b"numpy.core.multi"))


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("labels", TEN)
def test_every_label_set_of_a_published_file(tmp_path, labels, legacy):
    path = tmp_path / "CIFAR-10_human.pt"
    torch.save(ten(), path, _use_new_zipfile_serialization=not legacy)
    train, test = relabel(images(), path, TEN[labels])
    wrong = 1 + list(TEN).index(labels)
    assert (train.given != train.true).sum() == wrong
    assert train.true.tolist() == CLEAN.tolist()
    assert train.ids == images().train.ids
    assert test.given.tolist() == CLEAN.tolist()


def test_arrays_of_numpy_1_and_lists_are_read(tmp_path):
    """CIFAR-100_human.pt has two vectors of NumPy 1, and its coarse labels as lists."""
    path = tmp_path / "CIFAR-100_human.pt"
    fine = np.arange(40) % 100
    coarse = fine % 20
    torch.save(
        {
            "clean_label": fine,
            "noisy_label": (fine + 1) % 100,
            "clean_coarse_label": coarse.tolist(),
            "noisy_coarse_label": ((coarse + 2) % 20).tolist(),
        },
        path,
    )
    with_old_names(path)
    assert b"numpy.core.multiarray" in path.read_bytes()
    train = relabel(images(fine, 100), path, HUNDRED["fine"]).train
    assert (train.given == (train.true + 1) % 100).all()
    train = relabel(images(coarse, 20), path, HUNDRED["coarse"]).train
    assert (train.given == (train.true + 2) % 20).all()


def test_the_file_for_tensorflow_is_taken_only_if_its_order_is_ours(tmp_path):
    path = tmp_path / "CIFAR-10_human_ordered.npy"
    np.save(path, ten(), allow_pickle=True)
    assert relabel(images(), path, TEN["worst"]).train.given[0] == 1
    np.save(path, ten(CLEAN[::-1].copy()), allow_pickle=True)
    with pytest.raises(UsageError, match=r"40 of its 40 clean.*TensorFlow.*use CIFAR-10_human\.pt"):
        relabel(images(), path, TEN["worst"])
    np.save(path, {"clean_label": CLEAN, "noise_label": CLEAN}, allow_pickle=True)
    assert relabel(images(), path, HUNDRED["fine"]).train.given.tolist() == CLEAN.tolist()


class Evil:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


def test_a_program_in_a_label_file_is_refused_and_does_not_run(tmp_path):
    trace = tmp_path / "ran"
    evil = {**ten(), "worse_label": Evil(trace)}
    torch.save(evil, tmp_path / "a.pt")
    torch.save(evil, tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    np.save(tmp_path / "c.npy", evil, allow_pickle=True)
    np.save(tmp_path / "d.npy", np.array([Evil(trace)]), allow_pickle=True)
    for name in ("a.pt", "b.pt", "c.npy", "d.npy"):
        with pytest.raises(UsageError, match=f"{name} is not a readable"):
            read_labels(tmp_path / name)
    assert not trace.exists()


def test_nothing_stays_allowed_afterwards(tmp_path):
    torch.save(ten(), tmp_path / "a.pt")
    before = set(torch.serialization.get_safe_globals())  # a list in no order
    read_labels(tmp_path / "a.pt")
    assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clean_label": (CLEAN + 1) % 10}, "40 of its 40 clean labels are not those"),
        ({"worse_label": CLEAN[:-1]}, "39 human labels for 40 images"),
        ({"worse_label": CLEAN + 1}, r"outside the range 0\.\.9"),
        ({"worse_label": CLEAN / 1}, "readable|vector of integers"),
        ({"worse_label": ["a"] * 40}, "vector of integers"),
        ({"worse_label": [[1], [2, 3]]}, "lists of lists are not expected"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path, change, message):
    path = tmp_path / "CIFAR-10_human.pt"
    torch.save({**ten(), **change}, path)
    with pytest.raises(UsageError, match=message) as caught:
        relabel(images(), path, TEN["worst"])
    assert str(path) in str(caught.value)


def test_a_file_of_something_else_is_named(tmp_path):
    path = tmp_path / "CIFAR-10_human.pt"
    torch.save({"clean_label": CLEAN}, path)
    with pytest.raises(UsageError, match="no 'worse_label'; it has: clean_label"):
        relabel(images(), path, TEN["worst"])
    torch.save([1], path)
    with pytest.raises(UsageError, match="no dictionary"):
        read_labels(path)
    path.write_bytes(b"<html>404")
    with pytest.raises(UsageError, match="not a readable file of plain arrays"):
        read_labels(path)
    np.save(tmp_path / "a.npy", CLEAN)
    (tmp_path / "b.npy").write_bytes(b"<html>404")
    for name in ("a.npy", "b.npy"):
        with pytest.raises(UsageError, match=f"{name} is not a readable"):
            read_labels(tmp_path / name)


def test_the_published_rates():
    assert [c.rate for c in TEN.values()] == [9.01, 17.23, 18.12, 17.64, 40.21]
    assert [c.rate for c in HUNDRED.values()] == [40.20, 26.40]


@pytest.mark.parametrize("column", [*TEN.values(), *HUNDRED.values()], ids=[*TEN, *HUNDRED])
def test_a_whole_file_with_another_rate_warns(tmp_path, column):
    clean = np.zeros(50_000, np.int64)
    given = clean.copy()
    wrong = round(column.rate * 500)
    given[:wrong] = 1
    assert check_rate(tmp_path, given, clean, column) == pytest.approx(column.rate)
    given[: wrong + 4] = 1  # 0.008 points more, as rounding may explain
    check_rate(tmp_path, given, clean, column)
    given[: wrong + 10] = 1
    with pytest.warns(UserWarning, match=f"where {column.rate:.2f} % are published"):
        check_rate(tmp_path, given, clean, column)
    check_rate(tmp_path, given[:100], clean[:100], column)  # a part of a file has no such rate


def test_a_missing_label_file_says_what_to_put_where(tmp_path):
    with pytest.raises(UsageError, match=r"must hold CIFAR-100_human\.pt, from https://github"):
        find_labels("CIFAR-100", str(tmp_path))
    (tmp_path / "CIFAR-N").mkdir()
    (tmp_path / "CIFAR-N" / "CIFAR-100_human.pt").touch()
    assert find_labels("CIFAR-100", str(tmp_path)).parent.name == "CIFAR-N"


@pytest.mark.parametrize(("name", "cifar"), [("cifar10n", CIFAR10), ("cifar100n", CIFAR100)])
def test_from_a_recipe_at_full_length(tmp_path, name, cifar):
    """Black images in files of the official length; they are sparse, so that they cost nothing."""
    form, kinds = cifar.forms[0], len(cifar.kinds)
    (tmp_path / form.folder).mkdir()
    for file in form.files:
        with (tmp_path / form.folder / file.name).open("wb") as empty:
            empty.truncate(file.images * (3072 + kinds))
    zeros = np.zeros(50_000, np.int64)
    given = zeros.copy()
    given[: round(40.205 * 500)] = 1  # between the published 40.20 and 40.21
    keys = {"clean_label": zeros, "worse_label": given, "noisy_label": given}
    torch.save(keys, tmp_path / f"{cifar.name.upper().replace('R1', 'R-1')}_human.pt")
    train, test = DATASETS.build(name, root=str(tmp_path), checksums="ignore")
    assert (len(train), len(test)) == (50_000, 10_000)
    assert 100 * (train.given != train.true).mean() == pytest.approx(40.205, abs=0.002)
    assert train.ids[-1] == f"{cifar.name}/train/49999"
