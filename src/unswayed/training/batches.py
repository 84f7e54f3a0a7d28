"""The batches of a training: their rows, order and views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data import Dataset, stratified_split
from unswayed.data.stores import Store
from unswayed.device import sent
from unswayed.errors import UsageError
from unswayed.processes import count, part
from unswayed.randomness import permutation
from unswayed.schedules import value_at
from unswayed.training.settings import Settings
from unswayed.types import Batch, ViewKind, Views
from unswayed.views.policy import Policy

Rows = NDArray[np.int64]


class Batches:
    """Makes the batch of any step of any epoch. It has no state, so a resume needs none.

    Several processes share a batch. Each makes the views of its own rows, and knows the labels of
    all. Together they see the batch that one process would see.
    """

    def __init__(
        self,
        train: Dataset,
        policy: Policy,
        wanted: Sequence[ViewKind],
        settings: Settings,
        device: torch.device,
    ) -> None:
        """Choose the held-out rows, and count the steps of an epoch.

        Args:
            train: the data.
            policy: makes views.
            wanted: the views in a batch.
            settings: batch size, share held out, seed and size of images.
            device: where batches go.
        """
        self.train, self.policy, self.wanted = train, policy, tuple(wanted)
        self.settings, self.device = settings, device
        self.rows, self.holdout = stratified_split(
            train.given, train.keys, settings.holdout, settings.seed, "holdout"
        )
        self.steps = _steps(len(self.rows), settings)
        self.given = torch.from_numpy(train.given).to(device)
        self._order: tuple[int, Rows] = (-1, self.rows)

    def progress(self, epoch: int, step: int) -> float:
        """Return the progress before this step."""
        return self.settings.progress(epoch, step, self.steps)

    def order(self, epoch: int) -> Rows:
        """Return the rows in the order of an epoch."""
        if self._order[0] != epoch:
            keys = self.train.keys[self.rows]
            self._order = (
                epoch,
                self.rows[permutation(self.settings.seed, "order", keys, epoch)],
            )
        return self._order[1]

    def rows_of(self, epoch: int, step: int) -> Rows:
        """Return the rows of a step."""
        size = self.settings.batch_size
        return self.order(epoch)[step * size : (step + 1) * size]

    def __call__(self, epoch: int, step: int) -> Batch:
        """Return the batch of a step, and start loading the next one."""
        return self.of_rows(self.rows_of(epoch, step), epoch, step, self.rows_of(epoch, step + 1))

    def of_rows(self, rows: Rows, epoch: int, step: int, following: Rows | None = None) -> Batch:
        """Return these rows as the learner would see them at this step.

        Args:
            rows: of the batch.
            epoch: from 0.
            step: from 0.
            following: rows that are loaded next, while the views of these are made.
        """
        mine = rows[part(len(rows))]
        images = sent(self.train.images[torch.from_numpy(mine)], self.device)
        if following is not None and isinstance(self.train.images, Store):
            self.train.images.prefetch(torch.from_numpy(following[part(len(following))]))
        index = sent(torch.from_numpy(rows), self.device)
        views = self.policy(images, self.train.keys[mine], epoch, self.wanted)
        return Batch(views, self.given[index], index, epoch, self.progress(epoch, step), rows)

    def shrunk(self, views: Views, epoch: int) -> Views:
        """Return the views at the image size of this epoch."""
        share = value_at(self.settings.side, epoch / self.settings.epochs)
        whole = (*views.weak, *views.strong)[0].shape[2:]
        size = [max(1, round(share * side)) for side in whole]
        if size == list(whole):
            return views

        def smaller(x: Tensor) -> Tensor:
            return F.interpolate(x, size, mode="bilinear", antialias=True)

        return Views(*(tuple(map(smaller, kind)) for kind in views))


def _steps(num_rows: int, settings: Settings) -> int:
    size = settings.batch_size
    if num_rows < size and settings.drop_last:
        raise UsageError(
            f"there are fewer training samples ({num_rows}) than train.batch_size ({size}); "
            f"set train.batch_size={max(2, 2 ** (num_rows.bit_length() - 2))} or less"
        )
    if not settings.drop_last and num_rows % size == 1:
        raise UsageError(
            f"the last batch of {num_rows} samples would hold one image, too few for batch norm; "
            f"set train.drop_last=true or another train.batch_size than {size}"
        )
    smallest = size if settings.drop_last else num_rows % size or size
    if smallest < count():
        raise UsageError(
            f"a batch of {smallest} images is too small for {count()} processes; set a larger "
            "train.batch_size, train.drop_last=true, or start fewer processes"
        )
    return num_rows // size if settings.drop_last else -(-num_rows // size)
