from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.build import assemble
from unswayed.recipe import Recipe
from unswayed.training.batches import Batches


@pytest.fixture
def trainer(tiny):
    return assemble(Recipe.from_dict(tiny.sections, "train.drop_last=false"))[0]


def of_rank(trainer, rank, ranks):
    whole = trainer.batches
    return Batches(
        whole.train, whole.policy, whole.wanted, whole.settings, whole.device, rank, ranks
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_processes_share_every_batch_and_no_sample_is_lost_or_seen_twice(trainer, ranks):
    shares = [of_rank(trainer, rank, ranks) for rank in range(ranks)]
    seen = []
    for step in range(trainer.steps):
        parts = [share.rows_of(1, step) for share in shares]
        assert np.array_equal(np.concatenate(parts), trainer.batches.rows_of(1, step))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        seen += parts
    assert sorted(np.concatenate(seen).tolist()) == sorted(trainer.rows.tolist())


def test_a_process_sees_the_same_views_as_one_alone(trainer):
    alone = trainer.batches(0, 2)
    parts = [of_rank(trainer, rank, 2)(0, 2) for rank in range(2)]
    assert torch.equal(alone.index, torch.cat([part.index for part in parts]))
    assert torch.equal(alone.labels, torch.cat([part.labels for part in parts]))
    for kind in ("weak", "strong"):
        for whole, *halves in zip(
            getattr(alone.views, kind), *(getattr(part.views, kind) for part in parts), strict=True
        ):
            assert torch.equal(whole, torch.cat(halves))


def test_every_epoch_has_its_own_order(trainer):
    first, second = trainer.batches.order(0), trainer.batches.order(1)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, trainer.batches.order(0))
