"""What the benchmarks measure against must compute the same."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import audit as audit_benchmark
import audit_rivals
import audit_tables
import numpy as np
import pytest
import torch
from audit_measures import calibration_error, mean_and_spread, ranking
from audit_settings import Setting, cross_validated, missing, settings
from step import PlainStep

import unswayed
from unswayed import Recipe, Run
from unswayed.build import assemble
from unswayed.types import Batch, Views

FAST = ("model.name=fast", "model.width=4")
CASES = [(FAST, 0.0), (FAST, 0.1), (FAST, 0.9), (("model.name=preact_resnet18",), 0.1)]


@pytest.mark.parametrize(("model", "tau"), CASES)
def test_our_step_and_the_plain_one_have_the_same_loss_and_gradients(tiny, model, tau, generator):
    words = ["method=ctrr", *model, "framework.name=simsiam"]
    words += ["framework.projector_widths=[16, 16]", "regularizer.weight=5", "data.size=16"]
    trainer, _ = assemble(Recipe.from_dict(tiny.sections, *words, f"regularizer.tau={tau}"))
    learner = trainer.learner.double()
    plain = PlainStep(learner)
    views = torch.rand(3, 12, 1, 16, 16, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 10, (12,), generator=generator)
    batch = Batch(Views((views[0],), (views[1], views[2])), labels, torch.arange(12), 0, 0.3)
    total = learner(batch).total
    normal = [learner.classifier.normalize(view) for view in views]
    reference = plain(*normal, labels)
    assert total.item() == pytest.approx(reference.item(), rel=1e-12)
    total.backward()
    reference.backward()
    ours = dict(learner.named_parameters())
    pairs = {
        "backbone": learner.classifier.backbone,
        "head": learner.classifier.head,
        "projector": learner.framework.projector,
        "predictor": learner.framework.predictor,
    }
    checked = 0
    for name, part in pairs.items():
        theirs = dict(getattr(plain, name).named_parameters())
        for key, parameter in part.named_parameters():
            if parameter.requires_grad:
                assert torch.allclose(parameter.grad, theirs[key].grad, rtol=1e-9, atol=1e-12), key
                checked += 1
    assert checked == sum(p.requires_grad for p in ours.values())


def test_average_precision_counts_the_share_of_wrong_labels_at_every_wrong_one():
    rng = np.random.default_rng(3)
    true, given = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    score, suggested = rng.permutation(60) / 60, rng.integers(0, 4, 60)
    hits, precisions, right = 0, [], []
    wrong = [row for row in range(60) if given[row] != true[row]]
    order = sorted(range(60), key=lambda row: -score[row])
    for place, row in enumerate(order, start=1):
        if row in wrong:
            hits += 1
            precisions.append(hits / place)
            if place <= len(wrong):
                right.append(suggested[row] == true[row])
    pairs = [(a, b) for a in wrong for b in range(60) if b not in wrong]
    found = ranking(score, suggested, given, true)
    assert found["ap"] == pytest.approx(sum(precisions) / len(wrong))
    assert found["auroc"] == pytest.approx(np.mean([score[a] > score[b] for a, b in pairs]))
    assert found["precision_at_n"] == pytest.approx(len(right) / len(wrong))
    assert found["suggestions_right"] == pytest.approx(sum(right) / len(right))


def test_calibration_error_is_the_mean_distance_over_fifteen_equal_bins():
    rng = np.random.default_rng(4)
    p, wrong = rng.random(150), rng.random(150) < 0.3
    rows = sorted(range(150), key=lambda row: p[row])
    distances = []
    for start in range(0, 150, 10):
        part = rows[start : start + 10]
        distances.append(abs(sum(p[row] for row in part) - sum(wrong[row] for row in part)) / 10)
    assert calibration_error(p, wrong) == pytest.approx(sum(distances) / 15)


def test_mean_and_spread_are_those_of_a_sample():
    assert mean_and_spread([1.0, 2.0, 6.0]) == pytest.approx((3.0, 7**0.5))
    mean, spread = mean_and_spread([2.0])
    assert mean == 2
    assert math.isnan(spread)


TINY = Setting(
    "tiny",
    "a few digits",
    "digits",
    ("train.epochs=1", "data.size=8", "noise.rate=0.2", "train.threads=1"),
)


@pytest.fixture(scope="module")
def tiny_runs(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return runs, audit_benchmark.measured(TINY, 0, runs, None, "none")


def test_the_audit_benchmark_measures_a_run_against_the_truth(tiny_runs):
    runs, case = tiny_runs
    run = Run(runs / "tiny" / "seed-0" / "ours")
    samples, found = run.samples(), unswayed.audit(run)
    wrong = samples.given != samples.true
    own = case["ours"]
    assert case["rate"] == pytest.approx(wrong.mean())
    assert own["ap"] == ranking(found.p_wrong, found.suggested, samples.given, samples.true)["ap"]
    assert own["rate"]["covers"] == (own["rate"]["low"] <= case["rate"] <= own["rate"]["high"])
    assert own["half"]["count"] == wrong.sum() // 2
    assert own["half"]["real"] == pytest.approx(wrong[found.order[: wrong.sum() // 2]].mean())
    assert own["half"]["expected"] == pytest.approx(
        np.sort(found.p_wrong)[::-1][: wrong.sum() // 2].mean()
    )
    assert set(case["ap_by_evidence"]) == set(found.qualities)
    assert own["cpu_seconds"] > 0
    text = audit_tables.page([case])
    assert f"| a few digits | 1 | 20.0 | {100 * own['ap']:.1f} |" in text


def test_a_finished_training_is_not_made_again_and_one_of_other_options_is_refused(
    tiny_runs, capsys
):
    runs, case = tiny_runs
    again = audit_benchmark.measured(TINY, 0, runs, None, "none")
    assert again["ours"]["ap"] == case["ours"]["ap"]
    assert "training" not in capsys.readouterr().out
    other = replace(TINY, overrides=(*TINY.overrides, "train.batch_size=64"))
    with pytest.raises(SystemExit, match=r"other options \(train.batch_size\)"):
        audit_benchmark.measured(other, 0, runs, None, "none")


def test_folds_are_out_of_sample_and_cost_at_least_as_much_as_the_run(tiny_runs):
    runs, case = tiny_runs
    run = Run(runs / "tiny" / "seed-0" / "ours")
    p, cost = cross_validated(run, TINY, "ce", 3, None)
    assert p.shape == (len(run.samples().given), 10)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-4)
    assert cost["pflop"] >= case["ours"]["pflop"]
    seen = [Run(run.path.parent / "ce-3" / f"fold-{k}").samples().ids for k in range(3)]
    counts = Counter(name for ids in seen for name in ids.tolist())
    assert set(counts) == set(run.samples().ids.tolist())
    assert set(counts.values()) == {2}  # each sample is left out once


def test_settings_without_data_say_what_is_missing(tmp_path):
    lacking = {each.name: missing(each, tmp_path) for each in settings(tmp_path)}
    assert lacking["symmetric-20"] == f"{tmp_path} holds no cifar-10-batches-bin"
    assert lacking["random1"] == f"{tmp_path} holds no cifar10n_random1.npz"
    assert lacking["digits-5"] == ""
    assert missing(settings(None)[0], None) == "UNSWAYED_DATA is not set"
    (tmp_path / "cifar10n_worse.npz").touch()
    assert settings(tmp_path)[0].name == "worse"


def test_votes_of_neighbours_leave_the_sample_itself_out():
    rng = np.random.default_rng(6)
    features, given = rng.random((40, 3)).astype(np.float32), rng.integers(0, 3, 40)
    votes = audit_rivals.vote_of_neighbours(features, given)
    for row in range(40):
        distances = [(float(((features[row] - f) ** 2).sum()), k) for k, f in enumerate(features)]
        near = [k for _, k in sorted(distances) if k != row][:10]
        assert votes[row] == pytest.approx([np.mean(given[near] == label) for label in range(3)])


def test_the_committed_page_is_made_of_the_committed_numbers():
    results = Path(__file__).parents[1] / "results"
    cases = json.loads((results / "audit.json").read_text(encoding="utf-8"))["cases"]
    assert (results / "audit.md").read_text(encoding="utf-8") == audit_tables.page(cases)
