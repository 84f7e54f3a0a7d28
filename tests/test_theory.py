"""docs/theory.md is run as it stands, and its statements are tried on random distributions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "theory.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TEXT = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
Y, X, PLUS, GIVEN = range(4)


def test_the_page_prints_what_it_says(capsys):
    names = {}
    for part in CODE:
        exec(compile(part, "docs/theory.md", "exec"), names)
    assert capsys.readouterr().out == "".join(TEXT)


@pytest.fixture(scope="module")
def theory():
    names = {}
    coarsest = next(part for part in CODE if "def coarsest" in part).split("rng =")[0]
    code = CODE[0].split("c = 1 / 4")[0] + CODE[1] + coarsest
    exec(compile(code, "docs/theory.md", "exec"), names)
    return names


def worlds(theory, count, seed):
    """Yield random worlds with noise by image, and how many classes and images each has."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k, n = int(rng.integers(3, 5)), int(rng.integers(5, 9))
        p_x = rng.dirichlet(np.ones(n), k)
        yield (
            theory["joint"](rng.dirichlet(np.ones(k)), p_x, rng.dirichlet(np.ones(k), n)[None]),
            k,
            n,
        )


def test_worlds_are_distributions_with_the_stated_independences(theory):
    information = theory["information"]
    for p, _, _ in worlds(theory, 20, 0):
        assert p.sum() == pytest.approx(1)
        assert information(p, (X,), (PLUS,), (Y,)) == pytest.approx(0, abs=1e-12)
        assert information(p, (PLUS,), (GIVEN,), (X, Y)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("s", [-0.9, -0.5, 0.0, 0.2, 0.5, 0.8, 0.9, 0.99])
def test_gradient_norms(theory, s):
    inner, log = theory["squared_norms"](s)
    assert inner == pytest.approx((1 - s * s) / 4)
    assert log == pytest.approx((1 + s) / (1 - s) / 4)


def test_fano_holds_for_every_guess_of_a_random_world(theory):
    """Lemma 1 with log(K - 1), for the best guess of Ỹ from Z = X."""
    for p, k, _ in worlds(theory, 300, 1):
        table = p.sum(axis=(Y, PLUS))  # (x, ỹ)
        error = 1 - table.max(axis=1).sum()
        binary = theory["entropy"](np.array([error, 1 - error]))
        known = theory["information"](p, (X,), (GIVEN,))
        bound = (theory["entropy"](table.sum(axis=0)) - known - binary) / np.log(k - 1)
        assert error >= bound - 1e-12


def maximisers(theory, p, n):
    """Return all encoders, as codes, that keep what X knows of X⁺."""
    information = theory["information"]
    full = information(p, (X,), (PLUS,))
    for code in partitions(n):
        if information(theory["encode"](p, code), (X,), (PLUS,)) > full - 1e-9:
            yield code


def partitions(n, code=(0,)):
    """Yield every way to give n images codes, up to the codes' names."""
    if len(code) == n:
        yield list(code)
        return
    for value in range(max(code) + 2):
        yield from partitions(n, (*code, value))


def test_every_maximiser_obeys_the_first_part_of_theorem_2_and_lemma_2(theory):
    information, rng = theory["information"], np.random.default_rng(2)
    for _ in range(6):
        shared = rng.dirichlet(np.ones(2), 3)  # images come in pairs that are alike
        p_x = np.repeat(shared, 3, axis=1)[:, :5] + 1e-3
        p_x /= p_x.sum(axis=1, keepdims=True)
        p = theory["joint"](rng.dirichlet(np.ones(3)), p_x, rng.dirichlet(np.ones(3), 5)[None])
        epsilon, whole = information(p, (X,), (Y,), (PLUS,)), information(p, (X,), (Y,))
        found = list(maximisers(theory, p, 5))
        assert len(found) > 1
        for code in found:
            kept = information(theory["encode"](p, code), (X,), (Y,))
            assert whole - epsilon - 1e-9 <= kept <= whole + 1e-9


def second_part(theory, p):
    """Return what the coarsest maximiser keeps of Ỹ, theorem 2's bound on it, and γ - ε."""
    information = theory["information"]
    gap = information(p, (X,), (GIVEN,), (PLUS,)) - information(p, (X,), (Y,), (PLUS,))
    kept = information(theory["encode"](p, theory["coarsest"](p)), (X,), (GIVEN,))
    return kept, information(p, (X,), (GIVEN,)) - gap, gap


def test_the_coarsest_maximiser_is_one_and_no_coarser_code_is(theory):
    rng = np.random.default_rng(5)
    for _ in range(4):
        p_x = np.repeat(rng.dirichlet(np.ones(3), 3), [2, 1, 2], axis=1) / [2, 2, 1, 2, 2]
        p_x /= p_x.sum(axis=1, keepdims=True)
        p = theory["joint"](rng.dirichlet(np.ones(3)), p_x, rng.dirichlet(np.ones(3), 5)[None])
        codes = list(maximisers(theory, p, 5))
        assert min(len(set(code)) for code in codes) == len(set(theory["coarsest"](p))) == 3


def test_with_overlapping_classes_the_coarsest_maximiser_breaks_the_bound_of_theorem_2(theory):
    tried = 0
    for p, _, _ in worlds(theory, 100, 6):
        kept, bound, gap = second_part(theory, p)
        tried += gap > 1e-6
        assert (kept > bound + 1e-9) == (gap > 1e-9)
    assert tried > 20


def test_with_classes_that_share_no_image_the_coarsest_maximiser_meets_the_bound(theory):
    rng = np.random.default_rng(7)
    for _ in range(50):
        p_x = np.kron(np.eye(3), rng.dirichlet(np.ones(2), 1))
        p = theory["joint"](rng.dirichlet(np.ones(3)), p_x, rng.dirichlet(np.ones(3), 6)[None])
        kept, bound, gap = second_part(theory, p)
        assert gap > 0
        assert kept == pytest.approx(bound, abs=1e-9)


def test_noise_by_class_never_has_gamma_above_epsilon(theory):
    information, rng = theory["information"], np.random.default_rng(3)
    for _ in range(200):
        k, n = int(rng.integers(2, 5)), int(rng.integers(6, 9))
        p = theory["joint"](
            rng.dirichlet(np.ones(k)),
            rng.dirichlet(np.ones(n), k),
            rng.dirichlet(np.ones(k), k)[:, None],
        )
        gamma = information(p, (X,), (GIVEN,), (PLUS,))
        assert gamma <= information(p, (X,), (Y,), (PLUS,)) + 1e-9


def test_a_code_that_is_a_function_of_the_other_image_loses_exactly_gamma(theory):
    """The replacement of theorem 2's second part, on classes that share no image."""
    information, rng = theory["information"], np.random.default_rng(4)
    for _ in range(100):
        k, m = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        p_x = np.zeros((k, k * m))
        for y in range(k):
            p_x[y, y * m : (y + 1) * m] = rng.dirichlet(np.ones(m))
        p = theory["joint"](rng.dirichlet(np.ones(k)), p_x, rng.dirichlet(np.ones(k), k * m)[None])
        kept = information(theory["encode"](p, np.arange(k * m) // m), (X,), (GIVEN,))
        whole, gamma = information(p, (X,), (GIVEN,)), information(p, (X,), (GIVEN,), (PLUS,))
        assert kept == pytest.approx(whole - gamma, abs=1e-9)
