from __future__ import annotations

import pytest
from torch import nn

from unswayed.frameworks.heads import predictor, projector


def count(net):
    return sum(p.numel() for p in net.parameters())


def test_the_papers_heads_have_the_papers_size():
    assert count(projector(512, (2048, 2048, 2048), "simsiam")) == pytest.approx(9.45e6, rel=1e-3)
    assert count(predictor(2048, 512, "simsiam")) == pytest.approx(2.10e6, rel=1e-3)


def test_the_published_codes_heads_have_their_size():
    assert count(projector(512, (2048, 128), "plain")) == pytest.approx(1.32e6, rel=3e-3)
    assert count(predictor(128, 512, "plain")) == pytest.approx(0.13e6, rel=0.03)


def test_simsiams_projector_ends_in_a_batch_norm_without_affine_parameters():
    head = projector(8, (16, 16, 4), "simsiam")
    assert isinstance(head[-1], nn.BatchNorm1d)
    assert not head[-1].affine
    assert all(layer.bias is None for layer in head if isinstance(layer, nn.Linear))
    assert sum(isinstance(layer, nn.ReLU) for layer in head) == 2


def test_the_plain_projector_ends_in_a_linear_layer_with_a_bias():
    head = projector(8, (16, 4), "plain")
    assert isinstance(head[-1], nn.Linear)
    assert head[-1].bias is not None


def test_the_predictors_output_has_no_norm():
    head = predictor(8, 4, "simsiam")
    assert isinstance(head[-1], nn.Linear)
    assert head[-1].bias is not None
    assert head[0].bias is None
