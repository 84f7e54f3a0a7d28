"""Samples that show the same: told by their features and, where there are images, by pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from unswayed.audits.evidence import Inputs
from unswayed.audits.evidence.neighbours import nearest, search
from unswayed.data.stores import Store

SAME = 0.9999
"""Cosine similarity of features from which on two samples are the same, if nobody can look."""

SIMILAR, LOOKED_AT, MOST = 0.98, 3, 20_000
"""Cosine similarity from which on two images are compared, neighbours of each that are, and pairs
of all, the most similar first."""

ALIKE, SIDE, FLAT = 0.99, 16, 4.0
"""Correlation of images shrunk to SIDE × SIDE that are the same; flat ones cannot be compared."""

Rows = NDArray[np.int64]


class Pictures(NamedTuple):
    """Images of the samples, and test images with features of the same network, if there are."""

    train: Tensor | Store
    test: Tensor | Store | None = None
    test_features: Tensor | None = None


def unique_rows(inputs: Inputs) -> tuple[Rows, Rows]:
    """Return the first row of each different sample, and for every row which of these it equals.

    Samples are equal if features and label are. They are judged once: a wrong label that occurs
    twenty times must not be its own witness. Logits alone are equal too easily.
    """
    if inputs.features is None:
        return np.arange(len(inputs)), np.arange(len(inputs))
    both = np.stack([inputs.keys, inputs.labels.astype(np.uint64)], axis=1)
    _, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.reshape(-1)]


def groups_of(inputs: Inputs, pictures: Pictures | None) -> list[list[int]]:
    """Return groups of rows that show nearly the same."""
    if inputs.features is None:
        return []
    pairs = _equal(inputs)
    if len(inputs) > 2:
        rows, similarity = nearest(inputs)
        pairs = np.concatenate([pairs, _confirmed(rows, similarity, pictures)])
    if not len(pairs):
        return []
    shape = (len(inputs), len(inputs))
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)
    _, group = connected_components(graph, directed=False)
    members = np.unique(pairs)
    members = members[np.argsort(group[members], kind="stable")]
    ends = np.flatnonzero(np.diff(group[members])) + 1
    return [part.tolist() for part in np.split(members, ends)]


def leaks_of(inputs: Inputs, pictures: Pictures | None) -> list[int]:
    """Return rows that show nearly the same as a test image."""
    if pictures is None or pictures.test is None or pictures.test_features is None:
        return []
    assert inputs.features is not None
    place, similarity = search(
        pictures.test_features, inputs.features, 1, "comparing with test images"
    )
    count = min(int((similarity[:, 0] > SIMILAR).sum()), MOST)
    close = similarity[:, 0].topk(count).indices
    train = place[close, 0].long()
    same = _same(pictures.test, close, pictures.train, train)
    return sorted(set(train[same].tolist()))


def _equal(inputs: Inputs) -> Rows:
    """Return pairs (n, 2) of rows with equal features."""
    order = np.argsort(inputs.keys, kind="stable")
    same = inputs.keys[order][1:] == inputs.keys[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def _confirmed(rows: Tensor, similarity: Tensor, pictures: Pictures | None) -> Rows:
    """Return pairs (n, 2) of neighbours that are the same."""
    limit = SAME if pictures is None else SIMILAR
    rows, similarity = rows[:, :LOOKED_AT], similarity[:, :LOOKED_AT]
    a, column = (similarity > limit).nonzero(as_tuple=True)
    b = rows[a, column].long()
    if pictures is not None:
        once = a < b  # who is whose neighbour is mostly mutual; looking once is enough
        once |= ~(rows[b] == a[:, None]).any(dim=1)
        chosen = similarity[a, column].where(once, -1.0).topk(min(int(once.sum()), MOST)).indices
        a, b = a[chosen], b[chosen]
        same = _same(pictures.train, a, pictures.train, b)
        a, b = a[same], b[same]
    return torch.stack([a, b], dim=1).numpy()


def _same(these: Tensor | Store, a: Tensor, those: Tensor | Store, b: Tensor) -> Tensor:
    """Return which pairs of images show nearly the same, (n,)."""
    found = [torch.zeros(0, dtype=torch.bool)]
    for start in range(0, len(a), 1024):
        x, y = (
            _shrunk(images[rows[start : start + 1024]]) for images, rows in ((these, a), (those, b))
        )
        plain = (x.std(dim=1) < FLAT) | (y.std(dim=1) < FLAT)
        x, y = (F.normalize(each - each.mean(dim=1, keepdim=True), dim=1) for each in (x, y))
        found.append(((x * y).sum(dim=1) > ALIKE) & ~plain)
    return torch.cat(found)


def _shrunk(images: Tensor) -> Tensor:
    """Return gray images of SIDE × SIDE pixels as vectors."""
    gray = images.float().mean(dim=1, keepdim=True)
    return F.adaptive_avg_pool2d(gray, SIDE).flatten(1)


def told(groups: Sequence[Sequence[int]], labels: NDArray[np.int64]) -> tuple[set[int], set[int]]:
    """Return rows that have a twin with the same label, and rows that have one with another."""
    duplicate: set[int] = set()
    conflict: set[int] = set()
    for group in groups:
        given = labels[list(group)]
        for row, label in zip(group, given, strict=True):
            if (given == label).sum() > 1:
                duplicate.add(row)
            if (given != label).any():
                conflict.add(row)
    return duplicate, conflict
