"""Frameworks and regularizers on a whole batch, for tests: every row is its own key."""

from __future__ import annotations

import torch

from unswayed.types import Beliefs


def directions_of(framework, backbone, x1, x2):
    """Encode what the framework has a use for, as a learner does, and return its directions."""
    features = [backbone(x1)]
    if framework.second != "unused":
        with torch.set_grad_enabled(framework.second == "gradient"):
            features.append(backbone(x2))
    return framework(features, (x1, x2))


def weights_of(regularizer, p, labels, progress):
    rows = Beliefs(p, labels)
    return regularizer.pair_weights(rows, rows, torch.arange(len(p)), progress)


def cost_of(regularizer, directions, weights):
    return regularizer(directions, weights, torch.arange(len(weights)))


def repulsion_of(framework, directions, selected):
    return framework.repulsion(directions, selected, torch.arange(len(selected)))
