"""What forward and backward share: where T comes from, and when it is used."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reference
from unswayed import UsageError
from unswayed.losses import LOSSES
from unswayed.losses.transition import given_matrix
from unswayed.noise.estimate import anchor_matrix, confident_matrix

T = 0.6 * np.eye(4) + 0.1
NAMES = ["forward", "backward"]


@pytest.fixture(params=NAMES)
def make(request, network):
    def build(known=None, **options):
        facts = {"classifier": network, "num_classes": 4, "known_matrix": known}
        return LOSSES.build(request.param, facts, **options)

    return build


def test_the_estimate_matches_the_algorithm(rng):
    p = rng.dirichlet(np.full(5, 0.3), size=200)
    assert anchor_matrix(p, 97) == pytest.approx(reference.anchor_matrix(p, 97), abs=1e-12)


def test_the_filter_leaves_the_predictions_alone(rng):
    p = rng.dirichlet(np.full(5, 0.3), size=200)
    before = p.copy()
    anchor_matrix(p, 90)
    assert np.array_equal(p, before)


def test_without_a_filter_the_anchor_is_the_surest_sample():
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    assert anchor_matrix(p, 0) == pytest.approx(np.array([[0.9, 0.1], [0.2, 0.8]]))
    assert anchor_matrix(p, 97) == pytest.approx(np.array([[0.6, 0.4], [0.6, 0.4]]))


def test_a_class_without_anchors_takes_its_largest_prediction():
    p = np.array([[0.7, 0.3, 0.0], [0.4, 0.6, 0.0], [0.5, 0.5, 0.0]])
    found = anchor_matrix(p, 50)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3))
    assert found[2] == pytest.approx(p[0])
    same = np.full((6, 3), 1 / 3)  # every column is all outliers
    assert anchor_matrix(same, 97) == pytest.approx(np.full((3, 3), 1 / 3))


def test_a_given_matrix_corrects_from_the_start(make, batch, overview, network):
    for loss in (make(matrix=T.tolist()), make(known=T, matrix="known")):
        assert loss.matrix.numpy() == pytest.approx(T, abs=1e-7)
        assert loss.restart == 0
        assert not list(loss.parameters())
        before = loss(*batch)
        loss.before_epoch(overview(5, network))
        assert torch.equal(before, loss(*batch))
        assert not torch.allclose(before, F.cross_entropy(*batch[:2], reduction="none"))


def test_the_known_matrix_recovers_the_clean_minimiser(make, rng):
    """Softmax regression on three inputs, minimised over the exact distribution of noisy labels."""
    skewed = np.array([[0.7, 0.3, 0, 0], [0, 1, 0, 0], [0.1, 0.1, 0.6, 0.2], [0, 0.4, 0, 0.6]])
    clean = torch.from_numpy(rng.dirichlet(np.ones(4), size=3))  # (inputs, K)
    noisy = clean @ torch.from_numpy(skewed)
    loss = make(known=skewed, matrix="known")
    logits = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=500, line_search_fn="strong_wolfe")

    def expectation():
        optimizer.zero_grad()
        every = torch.stack([loss(logits, torch.full((3,), k)) for k in range(4)], dim=1)
        total = (noisy * every).sum()
        total.backward()
        return total

    for _ in range(5):
        optimizer.step(expectation)
    assert not np.allclose(noisy.numpy(), clean.numpy(), atol=0.05)
    assert logits.softmax(dim=1).detach().numpy() == pytest.approx(clean.numpy(), abs=1e-5)


def test_a_class_that_nobody_has_counts_as_never_mistaken(make):
    known = T.copy()
    known[2] = 0
    assert make(known=known, matrix="known").matrix[2].tolist() == [0, 0, 1, 0]


def test_an_estimate_is_cross_entropy_until_the_warm_up_is_done(make, batch, overview, network):
    loss = make(warmup=0.4, percentile=50)
    plain = F.cross_entropy(*batch[:2], reduction="none")
    assert loss.restart == 0.4
    for epoch in range(4):
        loss.before_epoch(overview(epoch, network))
        assert torch.equal(loss(*batch), plain)
    now = overview(4, network)
    loss.before_epoch(now)
    assert loss.estimated
    assert not torch.allclose(loss(*batch), plain)
    assert loss.matrix.sum(dim=1).tolist() == pytest.approx([1] * 4)


def test_an_untrained_network_estimates_nothing(make, overview, network):
    loss = make(warmup=0.01)
    loss.before_epoch(overview(0, network))
    assert not loss.estimated
    loss.before_epoch(overview(1, network))
    assert loss.estimated


def test_forward_estimates_by_the_anchors_of_the_best_network(network, overview):
    facts = {"classifier": network, "num_classes": 4, "known_matrix": None}
    loss = LOSSES.build("forward", facts, percentile=50, identity=0.2)
    now = overview(5, network)
    loss.before_epoch(now)
    p = now.look(network, now.rows).double().numpy()
    expected = 0.8 * reference.anchor_matrix(p, 50) + 0.2 * np.eye(4)
    assert loss.matrix.numpy() == pytest.approx(expected, abs=1e-6)


def test_forward_may_estimate_by_all_confident_predictions(network, overview):
    facts = {"classifier": network, "num_classes": 4, "known_matrix": None}
    loss = LOSSES.build("forward", facts, matrix="confident")
    now = overview(5, network)
    loss.before_epoch(now)
    expected = confident_matrix(now.look(network, now.holdout), now.given[now.holdout])
    assert loss.matrix.numpy() == pytest.approx(expected, abs=1e-6)


def test_training_goes_back_to_the_network_of_lowest_loss(make, overview, network):
    loss = make()
    average = copy.deepcopy(network)
    best = overview(1, network)
    best.given[best.holdout] = best.look(network, best.holdout).argmax(dim=1)
    kept = network.weight.detach().clone()
    loss.before_epoch(best)
    with torch.no_grad():
        network.weight.neg_()
        average.weight.neg_()
    loss.before_epoch(overview(5, average))  # what is evaluated is another than what is trained
    assert torch.equal(network.weight, kept)
    assert torch.equal(average.weight, kept)
    assert network.weight.requires_grad


def test_without_a_hold_out_the_present_network_is_taken(make, overview, network):
    loss = make()
    loss.before_epoch(overview(4, network, holdout=0))
    with torch.no_grad():
        network.weight.neg_()
    now = network.weight.detach().clone()
    loss.before_epoch(overview(5, network, holdout=0))
    assert loss.estimated
    assert torch.equal(network.weight, now)


def test_the_estimate_is_made_once_and_survives_a_round_trip(make, batch, overview, network):
    loss, resumed = make(percentile=50), make(percentile=50)
    loss.before_epoch(overview(5, network))
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(resumed.matrix, loss.matrix)
    assert torch.equal(resumed(*batch), loss(*batch))
    with torch.no_grad():
        network.weight.neg_()
    resumed.before_epoch(overview(6, network))
    assert torch.equal(resumed.matrix, loss.matrix)


def test_the_trained_network_is_no_part_of_the_loss(make, network):
    loss = make()
    assert not any("trained" in name for name in loss.state_dict())
    assert not [p for p in loss.parameters() if p.requires_grad]
    assert loss.trained[0] is network


def test_known_without_true_labels_says_what_to_do(make):
    with pytest.raises(UsageError, match="give the rows of the matrix, or use"):
        make(matrix="known")


def test_an_estimate_needs_the_network():
    with pytest.raises(UsageError, match="needs the classifier"):
        LOSSES.build("forward", {"num_classes": 4})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 0.0]], "must be 2 × 2"),
        ([[1.0], [0.0, 1.0]], "equally long"),
        ([[1.0, 0.0], [0.5, 0.4]], "row 1 of the matrix sums to 0.9"),
        ([[1.0, 0.0], [1.5, -0.5]], "row 1 of the matrix holds"),
    ],
)
def test_a_matrix_that_is_none_says_where(rows, message):
    with pytest.raises(UsageError, match=message):
        given_matrix(rows, None, 2)
    with pytest.raises(UsageError, match=message):
        LOSSES.build("forward", {"num_classes": 2}, matrix=rows)


@pytest.mark.parametrize(
    "option", [{"matrix": "guess"}, {"warmup": 0}, {"warmup": 1}, {"percentile": 101}]
)
def test_an_option_outside_its_range_is_an_error(make, option):
    with pytest.raises(UsageError, match=f"option '{next(iter(option))}'"):
        make(**option)
