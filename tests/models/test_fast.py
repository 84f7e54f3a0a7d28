from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from unswayed import Recipe
from unswayed.build import assemble
from unswayed.models import MODELS
from unswayed.models.fast import FastNet, whitening


@pytest.fixture
def images(generator):
    """Smooth images: neighbouring pixels and channels agree, as in photographs."""
    coarse = torch.rand(64, 3, 6, 6, generator=generator)
    fine = F.interpolate(coarse + coarse[:, :1], 16, mode="bilinear")
    return (fine / fine.max() * 255).to(torch.uint8)


def test_the_first_layer_makes_patches_uncorrelated_with_unit_variance(images):
    x = images.float() / 255
    std, mean = torch.std_mean(x, dim=(0, 2, 3), keepdim=True)
    out = F.conv2d((x - mean) / std, whitening(x))
    assert out.shape[1] == 24
    assert torch.allclose(out[:, :12], -out[:, 12:], atol=1e-4)
    rows = out[:, :12].transpose(0, 1).flatten(1).double()
    moments = rows @ rows.T / rows.shape[1]
    assert torch.allclose(
        moments - torch.diag(moments.diag()), torch.zeros(12, 12).double(), atol=1e-2
    )
    assert (moments.diag()[:6] > 0.9).all()
    assert (moments.diag() <= 1.01).all()


def test_convolutions_begin_as_identities():
    net = FastNet(3, width=32)
    pair = net.pairs[0]
    x = torch.randn(2, 24, 8, 8)
    assert torch.allclose(pair.first(x)[:, :24], x, atol=1e-6)
    y = torch.randn(2, 32, 8, 8)
    assert torch.allclose(pair.second(y), y, atol=1e-6)


@pytest.mark.parametrize("size", [(8, 8), (9, 9), (9, 8), (2, 3), (1, 1), (1, 4)])
def test_what_pooling_drops_is_not_computed_and_nothing_else_changes(size):
    pair = FastNet(3, width=8).pairs[0].double()
    x = torch.randn(2, 24, *size, dtype=torch.float64)
    plain = pair.first(x)
    plain = F.max_pool2d(plain, 2) if min(size) >= 2 else plain
    plain = F.gelu(pair.norms[1](pair.second(F.gelu(pair.norms[0](plain)))))
    assert torch.allclose(pair(x), plain, atol=1e-12)


def test_the_first_layer_and_the_scales_of_norms_stay_as_they_are(images):
    net = FastNet(3, images, width=8)
    frozen = {name for name, p in net.named_parameters() if not p.requires_grad}
    assert "first.weight" in frozen
    assert net.first.bias is None
    assert all(
        name.endswith("weight") and ("norms" in name or name == "first.weight") for name in frozen
    )
    assert len(frozen) == 7


def test_a_mirror_image_has_the_same_features_outside_training(images):
    net = FastNet(3, images, width=8, mirror=True)
    x = torch.randn(6, 3, 16, 16)
    assert not torch.allclose(net(x), net(x.flip(3)), atol=1e-4)
    net.eval()
    assert torch.allclose(net(x), net(x.flip(3)), atol=1e-5)
    net.mirror = False
    plain = (net(x) + net(x.flip(3))) / 2
    net.mirror = True
    assert torch.allclose(net(x), plain, atol=1e-6)


@pytest.mark.parametrize("size", [4, 8, 32])
@pytest.mark.parametrize("channels", [1, 3])
def test_it_takes_images_of_any_size(size, channels):
    net = MODELS.build("fast", {"in_channels": channels}, width=4)
    assert net(torch.randn(2, channels, size, size)).shape == (2, 16)


def test_a_recipe_whitens_on_what_it_trains_on(tiny):
    recipe = Recipe.from_dict(tiny.sections, "model.name=fast", "model.width=4")
    trainer, _ = assemble(recipe)
    assert float(trainer.classifier.backbone.first.weight.abs().max()) > 1
    again, _ = assemble(recipe)
    assert torch.equal(
        trainer.classifier.backbone.first.weight, again.classifier.backbone.first.weight
    )


def test_its_tricks_can_be_left_out(images):
    learnt = FastNet(3, images, width=32, whiten=False)
    assert learnt.first.weight.requires_grad
    assert float(learnt.first.weight.detach().abs().max()) < 1
    plain = FastNet(3, images, width=32, identity=False)
    x = torch.randn(2, 24, 8, 8)
    assert not torch.allclose(plain.pairs[0].first(x)[:, :24], x, atol=0.1)
