from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from unswayed.build import assemble
from unswayed.errors import UsageError
from unswayed.recipe import Recipe


@pytest.fixture
def trainer(tiny):
    return assemble(Recipe.from_dict(tiny.sections, "train.drop_last=false"))[0]


@contextmanager
def process(rank, processes):
    """Be one of several processes, which are not there."""
    dist.init_process_group("fake", rank=rank, world_size=processes, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def batch_of(trainer, rank, processes, step):
    with process(rank, processes):
        return trainer.batches(1, step)


@pytest.mark.parametrize("processes", [2, 3, 7])
def test_processes_share_every_batch(trainer, processes):
    for step in range(trainer.steps):
        alone = trainer.batches(1, step)
        parts = [batch_of(trainer, rank, processes, step) for rank in range(processes)]
        sizes = [len(part.views.weak[0]) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        for kind in ("weak", "strong"):
            views = [getattr(part.views, kind) for part in parts]
            for whole, *pieces in zip(getattr(alone.views, kind), *views, strict=True):
                assert torch.equal(whole, torch.cat(pieces))


def test_every_process_knows_all_labels_of_a_batch(trainer):
    alone, second = trainer.batches(1, 2), batch_of(trainer, 1, 2, 2)
    assert torch.equal(alone.index, second.index)
    assert torch.equal(alone.labels, second.labels)


def test_no_sample_is_lost_or_seen_twice(trainer):
    seen = np.concatenate([trainer.batches.rows_of(1, step) for step in range(trainer.steps)])
    assert sorted(seen.tolist()) == sorted(trainer.rows.tolist())


def test_a_batch_smaller_than_the_number_of_processes_is_refused(tiny):
    small = Recipe.from_dict(tiny.sections, "train.batch_size=3")
    with process(0, 4), pytest.raises(UsageError, match="a batch of 3 images is too small for 4"):
        assemble(small)


def test_every_epoch_has_its_own_order(trainer):
    first, second = trainer.batches.order(0), trainer.batches.order(1)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, trainer.batches.order(0))
