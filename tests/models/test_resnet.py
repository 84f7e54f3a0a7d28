from __future__ import annotations

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from unswayed import UsageError
from unswayed.models import MODELS

RGB = {"in_channels": 3}


@pytest.mark.parametrize(
    ("name", "dim"), [("resnet18", 512), ("resnet34", 512), ("resnet50", 2048)]
)
def test_is_torchvisions_network_without_its_classifier(name, dim):
    net = MODELS.build(name, RGB)
    theirs = torchvision.models.get_model(name)
    head = sum(p.numel() for p in theirs.fc.parameters())
    assert net.feature_dim == dim
    assert sum(p.numel() for p in net.parameters()) == (
        sum(p.numel() for p in theirs.parameters()) - head
    )


def test_the_small_stem_keeps_the_resolution():
    small, large = (MODELS.build("resnet18", RGB, stem=stem).net for stem in ("small", "imagenet"))
    x = torch.zeros(1, 3, 32, 32)
    assert small.maxpool(small.conv1(x)).shape[2:] == (32, 32)
    assert large.maxpool(large.conv1(x)).shape[2:] == (8, 8)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_loads_weights_from_a_file(tmp_path, suffix):
    state = torchvision.models.resnet18().state_dict()
    path = tmp_path / f"weights{suffix}"
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    net = MODELS.build("resnet18", RGB, weights=str(path))
    assert torch.equal(net.net.layer4[1].conv2.weight, state["layer4.1.conv2.weight"])
    assert torch.equal(net.net.conv1.weight, state["conv1.weight"])


class Malicious:
    def __reduce__(self):
        return print, ("a pickle was executed",)


def test_a_pickle_with_code_in_it_is_refused(tmp_path, capsys):
    path = tmp_path / "weights.pth"
    torch.save({"conv1.weight": Malicious()}, path)
    with pytest.raises(UsageError, match=r"weights\.pth"):
        MODELS.build("resnet18", RGB, weights=str(path))
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("IMAGENET1K_V7", "did you mean 'IMAGENET1K_V1'"),
        ("nowhere.safetensors", "no file nowhere.safetensors"),
    ],
)
def test_unknown_weights_are_an_error_that_says_what_there_is(weights, message):
    with pytest.raises(UsageError, match=message):
        MODELS.build("resnet18", RGB, weights=weights)


def test_weights_of_another_network_are_an_error(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file(torchvision.models.resnet34().state_dict(), path)
    with pytest.raises(UsageError, match="does not fit resnet18"):
        MODELS.build("resnet18", RGB, weights=str(path))


def test_damaged_weights_are_an_error(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"not a model")
    with pytest.raises(UsageError, match="cannot be read"):
        MODELS.build("resnet18", RGB, weights=str(path))


@pytest.mark.parametrize(("channels", "stem"), [(1, "imagenet"), (3, "small")])
def test_weights_for_another_stem_are_an_error(channels, stem):
    with pytest.raises(UsageError, match="7×7 stem"):
        MODELS.build("resnet18", {"in_channels": channels}, stem=stem, weights="IMAGENET1K_V1")


@pytest.mark.parametrize(("side", "stem"), [(32, "small"), (63, "small"), (64, "imagenet")])
def test_the_stem_can_suit_the_images(side, stem):
    facts = {"in_channels": 3, "image_size": (side, side)}
    found, expected = (MODELS.build("resnet18", facts, stem=each) for each in ("auto", stem))
    assert found.net.conv1.weight.shape == expected.net.conv1.weight.shape
    assert type(found.net.maxpool) is type(expected.net.maxpool)
