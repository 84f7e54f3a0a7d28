"""Samples that show the same are found, by features and by pixels."""

from __future__ import annotations

import numpy as np
import torch

from unswayed.audits.duplicates import Pictures, groups_of, leaks_of, told, unique_rows
from unswayed.audits.evidence import Inputs


def inputs_of(features, labels):
    return Inputs(
        np.asarray(labels), 2, None, torch.as_tensor(features), np.zeros(len(labels), bool)
    )


def test_equal_samples_have_one_row(generator):
    features = torch.randn(6, 4, generator=generator)[[0, 1, 0, 2, 0, 1]]
    rows, twin = unique_rows(inputs_of(features, [0, 0, 0, 1, 1, 0]))
    assert rows.tolist() == [0, 1, 3, 4]  # row 4 has another label than its twins
    assert twin.tolist() == [0, 1, 0, 2, 3, 1]


def test_pixels_decide_among_similar_features(generator):
    """Rows 0 and 1 show the same, a little brighter; rows 2 and 3 only have similar features."""
    images = torch.randint(0, 255, (30, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images[1] = images[0].clamp(max=250) + 4
    features = torch.randn(30, 16, generator=generator)
    features[1] = features[0] + 0.01 * torch.randn(16, generator=generator)
    features[3] = features[2] + 0.01 * torch.randn(16, generator=generator)
    inputs = inputs_of(features, [0, 1] * 15)
    assert groups_of(inputs, Pictures(images)) == [[0, 1]]
    assert told([[0, 1]], inputs.labels) == (set(), {0, 1})


def test_flat_images_are_never_called_the_same(generator):
    features = torch.ones(10, 4) + 1e-3 * torch.randn(10, 4, generator=generator)
    images = torch.full((10, 1, 16, 16), 7, dtype=torch.uint8)
    assert groups_of(inputs_of(features, [0, 1] * 5), Pictures(images)) == []


def test_a_test_image_among_the_training_images_is_a_leak(generator):
    images = torch.randint(0, 255, (20, 1, 16, 16), generator=generator, dtype=torch.uint8)
    features = torch.randn(20, 8, generator=generator)
    test = torch.stack([images[7], 255 - images[3]])
    pictures = Pictures(images, test, torch.stack([features[7], features[3]]))
    assert leaks_of(inputs_of(features, [0, 1] * 10), pictures) == [7]
    assert leaks_of(inputs_of(features, [0, 1] * 10), Pictures(images)) == []


def test_a_group_may_hold_a_duplicate_and_a_conflict():
    assert told([[3, 5, 8]], np.array([0] * 8 + [1])) == ({3, 5}, {3, 5, 8})
