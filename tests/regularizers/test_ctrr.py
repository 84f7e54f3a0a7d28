from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pairing import cost_of, weights_of
from reference import ctrr as literal
from unswayed import UsageError
from unswayed.functional import ctrr_loss
from unswayed.regularizers import REGULARIZERS, contrast
from unswayed.schedules import Ramp
from unswayed.types import Pairs

DOUBLE = torch.float64
Q1 = torch.tensor([[3, 4, 0], [2, 1, 0], [0, 1, 2], [-1, 2, 2]], dtype=DOUBLE)
Z2 = torch.tensor([[4, 3, 0], [5, 12, 0], [0, 2, 1], [2, -1, 2]], dtype=DOUBLE)
Q2 = torch.tensor([[1, 2, 2], [2, 1, 2], [2, 2, 1], [0, 3, 4]], dtype=DOUBLE)
Z1 = torch.tensor([[3, 2, 1], [1, 3, 2], [2, 1, 3], [4, 0, 3]], dtype=DOUBLE)
P = torch.tensor(
    [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1]], dtype=DOUBLE
)

# Computed independently of this package, by hand-written scripts and the authors' own loss lines.
VECTORS = [
    ("coordinate", "log", -1.5391383992, -1.4456878749),
    ("coordinate", "inner", -0.7881189875, -0.7805923647),
    ("similarity", "log", -1.4400572868, -1.3961122052),
    ("similarity", "inner", -0.7043775486, -0.7387050674),
]


@pytest.mark.parametrize(("clamp", "form", "one_sided", "symmetric"), VECTORS)
def test_known_vectors(clamp, form, one_sided, symmetric):
    first = ctrr_loss(Q1, Z2, P, tau=0.4, form=form, clamp=clamp)
    second = ctrr_loss(Q2, Z1, P, tau=0.4, form=form, clamp=clamp)
    assert first.item() == pytest.approx(one_sided, abs=1e-8)
    assert ((first + second) / 2).item() == pytest.approx(symmetric, abs=1e-8)


@pytest.mark.parametrize(("name", "form"), [("ctrr", "log"), ("inner_product", "inner")])
@pytest.mark.parametrize("clamp", ["coordinate", "similarity"])
def test_the_components_average_both_directions(name, form, clamp):
    regularizer = REGULARIZERS.build(name, tau=0.4, clamp=clamp)
    weights = weights_of(regularizer, P, torch.zeros(4, dtype=torch.long), 0.0)
    expected = next(v[3] for v in VECTORS if v[:2] == (clamp, form))
    found = cost_of(regularizer, [Pairs(Q1, Z2), Pairs(Q2, Z1)], weights)
    assert found.item() == pytest.approx(expected, abs=1e-8)


def test_known_pair_weights():
    regularizer = REGULARIZERS.build("ctrr", tau=0.4)
    expected = [
        [0.578035, 0.421965, 0, 0],
        [0.421965, 0.578035, 0, 0],
        [0, 0, 0.628931, 0.371069],
        [0, 0, 0.371069, 0.628931],
    ]
    found = weights_of(regularizer, P, torch.zeros(4, dtype=torch.long), 0.0)
    assert found.numpy() == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("clamp", "row", "expected"),
    [
        ("similarity", 0, [0.12855491, -0.09641618, 0.0]),
        ("coordinate", 3, [-0.0950921, -0.07180011, 0.02425406]),
    ],
)
def test_known_gradients(clamp, row, expected):
    q = Q1.clone().requires_grad_()
    ctrr_loss(q, Z2, P, tau=0.4, clamp=clamp).backward()
    assert q.grad[row].numpy() == pytest.approx(np.array(expected), abs=1e-8)


@pytest.mark.parametrize("clamp", ["similarity", "coordinate"])
def test_a_coincident_pair_stays_finite(clamp):
    z = Z2.clone()
    z[1] = torch.tensor([3.0, 4.0, 0.0])
    q = Q1.clone().requires_grad_()
    loss = ctrr_loss(q, z, P, tau=0.4, clamp=clamp)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(q.grad).all()
    if clamp == "similarity":
        assert loss.item() == pytest.approx(-2.0643126899, abs=1e-8)


def test_one_coincident_but_unselected_pair_does_not_poison_the_batch():
    z = Q1.flip(0).clone()  # every row coincides with a row that disagrees about the class
    q = Q1.float().requires_grad_()
    ctrr_loss(q, z.float(), P.float(), tau=0.4, clamp="coordinate").backward()
    assert torch.isfinite(q.grad).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 7),
    dim=st.integers(1, 5),
    classes=st.integers(2, 6),
    tau=st.floats(0, 1.2),
    form=st.sampled_from(["log", "inner"]),
    clamp=st.sampled_from(["similarity", "coordinate"]),
    pair_weight=st.sampled_from(["soft", "hard"]),
)
def test_matches_the_literal_transcription(
    seed, batch, dim, classes, tau, form, clamp, pair_weight
):
    rng = np.random.default_rng(seed)
    q, z = rng.normal(size=(2, batch, dim))
    p = rng.dirichlet(np.full(classes, 0.3), size=batch)
    found = ctrr_loss(
        *map(torch.from_numpy, (q, z, p)), tau=tau, form=form, clamp=clamp, pair_weight=pair_weight
    )
    assert found.item() == pytest.approx(literal(q, z, p, tau, form, clamp, pair_weight), abs=1e-9)


@given(seed=st.integers(0, 1000))
def test_tau_above_one_leaves_only_the_diagonal(seed):
    q, z = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 5, 3)))
    p = torch.eye(5, dtype=DOUBLE)[torch.zeros(5, dtype=torch.long)]
    same = torch.nn.functional.cosine_similarity(q, z).mean()
    for form in ("log", "inner"):
        assert ctrr_loss(q, z, p, tau=1.01, form=form).item() == pytest.approx(-same.item())


def test_no_gradient_reaches_the_classifier_through_the_pairs():
    p = P.clone().requires_grad_()
    q = Q1.clone().requires_grad_()
    ctrr_loss(q, Z2, p, tau=0.4).backward()
    assert p.grad is None


@pytest.mark.parametrize("s", [-0.9, -0.5, 0.0, 0.2, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("form", ["inner", "log"])
def test_gradient_norm_of_a_pair(s, form):
    """The corrected form of the paper's eqs. 5 and 7: c(1-s²) for eq. 4, c(1+s)/(1-s) for eq. 6."""
    q = torch.tensor([[2.0, 0.0], [1.0, 0.0]], dtype=DOUBLE, requires_grad=True)
    z = torch.tensor([[0.0, 1.0], [s, (1 - s * s) ** 0.5]], dtype=DOUBLE)
    weights = torch.tensor([[0.0, 2.0], [0.0, 0.0]], dtype=DOUBLE)  # the pair (0, 1) alone
    contrast(q, z, weights, torch.arange(2), form=form, clamp="similarity").backward()
    c = 1 / 4
    expected = c * (1 - s * s) if form == "inner" else c * (1 + s) / (1 - s)
    assert (q.grad[0] ** 2).sum().item() == pytest.approx(expected, rel=1e-9)


def test_the_gradient_is_right_numerically():
    q = Q1.clone().requires_grad_()
    for form in ("log", "inner"):
        assert torch.autograd.gradcheck(lambda x, f=form: ctrr_loss(x, Z2, P, tau=0.4, form=f), q)


def test_tau_may_be_a_schedule():
    regularizer = REGULARIZERS.build("ctrr", tau={"name": "ramp", "start": 1.0, "end": 0.4})
    assert regularizer.tau == Ramp(1.0, 0.4)
    labels = torch.zeros(4, dtype=torch.long)
    assert torch.equal(weights_of(regularizer, P, labels, 0.0), torch.eye(4, dtype=DOUBLE))
    assert (weights_of(regularizer, P, labels, 1.0) > 0).sum() == 8


@pytest.mark.parametrize("word", ["form", "clamp", "pair_weight"])
def test_a_misspelt_choice_is_an_error(word):
    with pytest.raises(UsageError, match=word):
        ctrr_loss(Q1, Z2, P, tau=0.4, **{word: "sofft"})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_autocast_stay_finite(dtype):
    z = Z2.clone()
    z[1] = Q1[0]
    half = ctrr_loss(Q1.to(dtype), z.to(dtype), P.to(dtype), tau=0.3)
    assert torch.isfinite(half)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = ctrr_loss(Q1.float(), z.float(), P.float(), tau=0.4)
    assert mixed.item() == pytest.approx(-2.0643126899, abs=1e-4)
