"""torchvision's ResNets by name, with a stem for small images and weights from a name or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from unswayed.errors import UsageError
from unswayed.models import Backbone, register
from unswayed.registry import did_you_mean

Stem = Literal["imagenet", "small", "auto"]
Size = tuple[int, int] | None
LARGE = 64
"""Pixels of the shorter side from which on "auto" takes the stem of large images."""


class ResNet(Backbone):
    """A torchvision ResNet without its classifier."""

    def __init__(
        self, name: str, in_channels: int, image_size: Size, stem: Stem, weights: str | None
    ) -> None:
        import torchvision  # more than a second, and only these networks need it

        super().__init__()
        net = torchvision.models.get_model(name, weights=None)
        self.feature_dim = int(net.fc.in_features)
        net.fc = nn.Identity()
        if stem == "auto":
            small = weights is None and image_size is not None and min(image_size) < LARGE
            stem = "small" if small else "imagenet"
        if weights is not None:
            if stem != "imagenet" or in_channels != 3:
                raise UsageError(
                    f"model.weights: the weights of {name} are for RGB images and the 7×7 stem; "
                    "set model.stem='imagenet', use colour images, or leave model.weights out"
                )
            _load(net, name, weights)
        if stem == "small":
            net.conv1 = nn.Conv2d(in_channels, 64, 3, padding=1, bias=False)
            net.maxpool = nn.Identity()
        elif in_channels != 3:
            net.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        if net.conv1.in_channels != 3 or stem == "small":
            nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 512), or (B, 2048) for ResNet-50."""
        out: Tensor = self.net(x)
        return out


@register("resnet18", paper="He et al., CVPR 2016")
def resnet18(
    in_channels: int,
    image_size: Size = None,
    stem: Stem = "imagenet",
    weights: str | None = None,
) -> ResNet:
    """ResNet-18 with 512 features.

    Args:
        in_channels: C.
        image_size: (H, W), if known.
        stem: the 7×7 stem with max-pool for large images, 3×3 without for small ones, or auto:
            large from 64 pixels on. A small stem on large images takes sixteen times the memory.
        weights: a torchvision name such as IMAGENET1K_V1 (fetched on first use), or the path of
            a .safetensors or .pth file.
    """
    return ResNet("resnet18", in_channels, image_size, stem, weights)


@register("resnet34", paper="He et al., CVPR 2016")
def resnet34(
    in_channels: int,
    image_size: Size = None,
    stem: Stem = "imagenet",
    weights: str | None = None,
) -> ResNet:
    """ResNet-34 with 512 features; options as for resnet18."""
    return ResNet("resnet34", in_channels, image_size, stem, weights)


@register("resnet50", paper="He et al., CVPR 2016")
def resnet50(
    in_channels: int,
    image_size: Size = None,
    stem: Stem = "imagenet",
    weights: str | None = None,
) -> ResNet:
    """ResNet-50 with 2,048 features; options as for resnet18."""
    return ResNet("resnet50", in_channels, image_size, stem, weights)


def _load(net: nn.Module, name: str, weights: str) -> None:
    path = Path(weights)
    state = _read(path) if path.suffix else _fetch(name, weights)
    state = {key: tensor for key, tensor in state.items() if not key.startswith("fc.")}
    try:
        net.load_state_dict(state)
    except Exception as error:  # tensors may be sparse, or on a device that holds no data
        reason = str(error).partition("\n")[2].strip().partition("\n")[0] or str(error)
        raise UsageError(f"model.weights: {weights} does not fit {name}: {reason}") from error


def _fetch(name: str, weights: str) -> dict[str, Tensor]:
    import torchvision

    known = torchvision.models.get_model_weights(name)
    if weights not in known.__members__:
        raise UsageError(
            f"model.weights: {name} has no weights called {weights!r}; "
            f"{did_you_mean(weights, known.__members__)}; or give a .safetensors or .pth file"
        )
    try:
        state: dict[str, Tensor] = known[weights].get_state_dict(progress=True, check_hash=True)
    except OSError as error:
        raise UsageError(f"model.weights: {weights} could not be fetched: {error}") from error
    return state


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UsageError(f"model.weights: there is no file {path}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, RuntimeError, ValueError, EOFError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]  # torch adds a page of advice
        raise UsageError(f"model.weights: {path} cannot be read: {reason}") from error
    except Exception as error:  # weights_only raises pickle's own error for forbidden objects
        raise UsageError(f"model.weights: {path} holds more than tensors; refused") from error
    named = isinstance(state, dict) and all(isinstance(key, str) for key in state)
    if not named or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise UsageError(f"model.weights: {path} is not a state dict of tensors")
    return state
