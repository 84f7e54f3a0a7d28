"""What else may be odd about a sample."""

from __future__ import annotations

import numpy as np
import torch

from unswayed.audits.evidence import Inputs
from unswayed.audits.flags import flags_of, outliers
from unswayed.audits.result import FLAGS


def test_each_oddity_has_its_word():
    p_top = np.array([[0.5, 0.4], [0.9, 0.1], [0.3, 0.15], [0.99, 0.01], [0.9, 0.1]])
    outlier = np.array([False, True, False, False, False])
    found = flags_of(p_top, outlier, [[3, 4]], [4], np.array([0, 0, 0, 0, 1]))
    assert found == {0: "ambiguous", 1: "outlier", 3: "conflict", 4: "conflict leak"}
    assert {word for words in found.values() for word in words.split()} <= FLAGS.keys()


def test_a_sample_far_from_all_others_is_an_outlier(generator):
    features = torch.randn(200, 3, generator=generator) + torch.tensor([9.0, 0.0, 0.0])
    features[17] = torch.tensor([-9.0, 0.0, 0.0])
    inputs = Inputs(np.zeros(200, int), 2, None, features, np.zeros(200, bool))
    found = outliers(inputs)
    assert found[17]
    assert found.mean() < 0.1
    assert not outliers(Inputs(np.zeros(200, int), 2, features[:, :2])).any()
