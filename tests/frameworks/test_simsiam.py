from __future__ import annotations

import torch

from pairing import directions_of
from unswayed.frameworks import FRAMEWORKS
from unswayed.models import MODELS


def test_one_sided_trains_through_the_first_view_only(generator):
    backbone = MODELS.build("small", {"in_channels": 1}, width=4)
    framework = FRAMEWORKS["simsiam"].build(
        {"projector_widths": (16, 12), "symmetric": False}, {"feature_dim": backbone.feature_dim}
    )
    x1, x2 = torch.randn(2, 8, 1, 8, 8, generator=generator)
    x1.requires_grad_()
    x2.requires_grad_()
    (pairs,) = directions_of(framework, backbone, x1, x2)
    (pairs.query * pairs.key).sum().backward()
    assert x1.grad is not None
    assert x2.grad is None
