from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import Recipe, UsageError
from unswayed.noise import NOISES, realised
from unswayed.noise.matrix import pick
from unswayed.randomness import keys_of, uniform

N = 20_000
IDS = [str(i) for i in range(N)]
KEYS = keys_of(IDS)
ROWS = [[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]


def make(rows=None, classes=3, **options):
    return NOISES.build("matrix", {"num_classes": classes}, rows=rows, **options)


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_any_stochastic_matrix_is_realised(classes, seed):
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), classes)
    labels = np.arange(N) % classes
    found = realised(labels, make(rows.tolist(), classes).corrupt(labels, KEYS, seed), classes)
    sigma = np.sqrt(rows * (1 - rows) / (N / classes))
    assert (np.abs(found.matrix - rows) <= 5 * sigma + 2e-3).all()
    assert (found.matrix[rows == 0] == 0).all()


def test_labels_are_those_of_the_inverse_cumulative_distribution():
    draw = uniform(4, "noise/label", KEYS[:60])
    labels = np.arange(60) % 3
    expected = []
    for label, u in zip(labels, draw, strict=True):
        total, given_label = 0.0, 0
        for k, share in enumerate(ROWS[label]):
            total += share
            if u < total:
                given_label = k
                break
        expected.append(given_label)
    assert make(ROWS).corrupt(labels, KEYS[:60], 4).tolist() == expected


def test_a_class_of_share_zero_is_never_drawn():
    almost_one = np.nextafter(1.0, 0.0)
    thirds = np.array([0.0, 0.1, 0.2, 0.7 - 1e-7, 0.0])
    assert pick(thirds, np.array([0.0, almost_one])).tolist() == [1, 3]


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
def test_a_file_holds_the_same_matrix(suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    if suffix == "npy":
        np.save(path, ROWS)
    elif suffix == "npz":
        np.savez(path, matrix=ROWS, other=np.zeros(2))
    else:
        np.savetxt(path, ROWS, delimiter=",")
    assert make(path=str(path)).matrix() == pytest.approx(np.array(ROWS))


def test_a_recipe_may_hold_the_matrix():
    recipe = Recipe.load("digits", "noise.name=matrix", f"noise.rows={np.eye(10).tolist()}")
    assert recipe.build("noise", {"num_classes": 10}).matrix() == pytest.approx(np.eye(10))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], "3 × 3"),
        ([], "3 × 3"),
        ([[1.0], [0.0, 1.0], [1.0]], "equally long"),
        ([[1, 0, 0], [0, 1, 0], [0.5, 0.6, -0.1]], "row 2 .*-0.1"),
        ([[1, 0, 0], [0.5, 0.4, 0], [0, 0, 1]], "row 1 .*sums to 0.9"),
        ([[1, 0, 0], [0, "x", 0], [0, 0, 1]], "rows"),
        (None, "one of noise.rows and noise.path"),
    ],
)
def test_what_is_no_transition_matrix_is_an_error(rows, message):
    with pytest.raises(UsageError, match=message):
        make(rows)


def test_rows_and_a_path_are_one_too_many():
    with pytest.raises(UsageError, match="one of"):
        make(ROWS, path="t.npy")


def test_a_file_that_is_not_there_or_no_matrix_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no file"):
        make(path=str(tmp_path / "t.npy"))
    for name, content in (("t.npy", b"junk"), ("t.csv", b"a,b\n"), ("t.npz", b"PK")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=r"not a readable"):
            make(path=str(tmp_path / name))
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    with pytest.raises(UsageError, match="no array 'matrix'"):
        make(path=str(tmp_path / "two.npz"))
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(UsageError, match="not a readable"):
        make(path=str(tmp_path / "object.npy"))
