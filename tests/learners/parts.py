"""Small real parts for the tests of learners."""

from __future__ import annotations

import torch

from unswayed.learners import LEARNERS, Classifier
from unswayed.losses import LOSSES
from unswayed.models import MODELS
from unswayed.types import Batch, Overview, Views

K, N, B = 3, 24, 10


def new_classifier():
    backbone = MODELS.build("small", {"in_channels": 1}, width=4)
    return Classifier(backbone, K, [0.4], [0.2])


def build(name, loss="ce", known_rate=0.4, **options):
    """Return a learner in double precision."""
    torch.manual_seed(0)
    facts = {
        "classifier": new_classifier(),
        "new_classifier": new_classifier,
        "num_samples": N,
        "num_classes": K,
        "run_seed": 5,
        "known_rate": known_rate,
        "known_matrix": None,
    }
    facts["loss"] = LOSSES[loss].build({}, facts)
    facts |= {"framework": None, "regularizer": None}
    return LEARNERS[name].build(options, facts).double()


def make_batch(generator, epoch=3, progress=0.3):
    views = torch.rand(4, B, 1, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, K, (B,), generator=generator)
    index = torch.randperm(N, generator=generator)[:B]
    seen = Views((views[0], views[3]), (views[1], views[2]))
    return Batch(seen, labels, index, epoch, progress)


def overview(given, p, network=None, epoch=5, epochs=10, holdout=()):
    """Return an overview in which every network sees the probabilities p (N, K)."""
    holdout = torch.tensor(holdout, dtype=torch.long)
    rows = torch.tensor([i for i in range(len(given)) if i not in set(holdout.tolist())])
    return Overview(
        epoch, epochs, given, rows, holdout, network, lambda net, which: p[which].split(7)
    )
