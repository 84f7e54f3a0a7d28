"""What every backbone promises."""

from __future__ import annotations

import pytest
import torch

from unswayed.models import MODELS


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", MODELS.names())
def test_turns_images_into_features_that_can_be_trained(name, channels, generator):
    net = MODELS.build(name, {"in_channels": channels})
    x = torch.randn(2, channels, 32, 32, generator=generator)
    features = net(x)
    features.square().sum().backward()
    assert features.shape == (2, net.feature_dim)
    trained = [p for p in net.parameters() if p.requires_grad]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in trained)
