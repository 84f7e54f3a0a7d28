from __future__ import annotations

import numpy as np

from unswayed.noise import realised


def test_counts_what_became_of_every_class():
    rate, matrix = realised(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 3)
    assert rate == 0.25
    assert matrix.tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0]]
