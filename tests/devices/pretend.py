"""A device that does not exist: its tensors know where they are, and their numbers are the CPU's.

PyTorch asks it whatever it would ask a GPU. So a real training runs on it, with real numbers. It
refuses an operation on tensors of both places, as CUDA does, and it notes whenever the CPU would
have to wait for the device.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

import unswayed

aten = torch.ops.aten
PACKAGE = str(Path(unswayed.__file__).parent)

INDEXED = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}
"""Operations whose index may be on the CPU: CUDA copies it, and waits."""

ANSWERS = {
    aten._local_scalar_dense.default,
    aten._linalg_check_errors.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
}
"""Operations whose result, or its size, the CPU must know before it goes on."""

COPIES = {aten._to_copy.default, aten.copy_.default, aten._copy_from.default}


class Module(_DummyBackendModule):
    """What PyTorch asks of a device's module."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


HALF = ("conv2d", "linear", "matmul", "mm", "addmm", "bmm", "baddbmm")
SINGLE = (
    "exp",
    "expm1",
    "log",
    "log1p",
    "log_softmax.int",
    "softmax.int",
    "sum",
    "sum.dim_IntList",
)
"""What CUDA's autocast computes in half and in single precision, as far as this package uses it."""

_library = torch.library.Library("aten", "IMPL")
_fallback = torch.library.Library("_", "IMPL")
_outside = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)


def register() -> torch.device:
    """Make the device known to PyTorch. It must be done before the first backward pass."""
    _setup_privateuseone_for_python_backend("pretend", backend_module=Module())
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=...) asks us to copy
    _fallback.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for names, dtype in ((HALF, torch.bfloat16), (SINGLE, torch.float32)):
        for name in names:
            _library.impl(name, _cast(name, dtype), "AutocastPrivateUse1")
    return torch.device("pretend:0")


def _cast(name: str, dtype: torch.dtype):
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(aten, packet), overload or "default")

    def fits(x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype in (torch.float32, torch.bfloat16)

    def kernel(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(_outside):
            args, kwargs = mapped(lambda x: x.to(dtype) if fits(x) else x, (args, kwargs))
            return operation(*args, **kwargs)

    return kernel


class OnDevice(Tensor):
    """A tensor of the device; `numbers` is the CPU's tensor that it stands for."""

    numbers: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: Tensor) -> OnDevice:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=torch.device("pretend:0"),
        )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def __repr__(self) -> str:
        return f"OnDevice({self.numbers})"

    def __tensor_flatten__(self):  # lets `Module.to` exchange whole parameters
        return ["numbers"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return OnDevice(inner["numbers"])

    def tolist(self):
        return self.cpu().tolist()  # as PyTorch does for a GPU, but not for a subclass

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


class Device(TorchDispatchMode):
    """Runs what happens on the device, also what makes new tensors there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


waits: Counter[tuple[str, str]] = Counter()
"""How often the CPU had to wait: in a step or elsewhere, and where in the package for what."""


convolved: set[torch.dtype] = set()
"""The precisions in which the device has convolved."""


def note(func) -> None:
    frame, ours = sys._getframe(), []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            ours.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    file, name = ours[0] if ours else ("", "")
    when = "step" if any(name == "make_step" for _, name in ours) else "between"
    waits[when, f"{file[len(PACKAGE) + 1 :]} {name}: {func}"] += 1


def mapped(change: Callable[[Tensor], object], x: Any) -> Any:
    """Return arguments or results with every tensor changed."""
    if isinstance(x, Tensor):
        return change(x)
    if isinstance(x, list | tuple):
        return type(x)(mapped(change, each) for each in x)
    return {k: mapped(change, v) for k, v in x.items()} if isinstance(x, dict) else x


def tensors(x: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, list | tuple | dict):
        for each in x.values() if isinstance(x, dict) else x:
            yield from tensors(each)


def on_device(x: object) -> bool:
    return isinstance(x, OnDevice)


def run(func, args, kwargs):
    flat = list(tensors((args, kwargs)))
    target = kwargs.get("device")
    made_here = target is not None and torch.device(target).type == "pretend"
    if not made_here and not any(map(on_device, flat)):
        return func(*args, **kwargs)
    if func in COPIES:
        goes = made_here if func is aten._to_copy.default and target else on_device(args[0])
        comes = on_device(args[0]) if func is aten._to_copy.default else on_device(args[1])
        if goes != comes and not (kwargs.get("non_blocking") and goes):
            note(func)
    else:
        check(func, args, flat)
    if func is aten.convolution.default:
        convolved.add(args[0].dtype)
    if target is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    plain_args, plain_kwargs = mapped(lambda x: x.numbers if on_device(x) else x, (args, kwargs))
    result = func(*plain_args, **plain_kwargs)
    stays = made_here or (target is None and any(map(on_device, flat)))
    if func is aten.copy_.default:
        stays = on_device(args[0])
    if stays:
        result = mapped(OnDevice, result)
    return return_and_correct_aliasing(func, args, kwargs, result) if stays else result


def check(func, args, flat) -> None:
    """Refuse tensors of two places, and note what the CPU must wait for."""
    away = [x for x in flat if not on_device(x)]
    if func in INDEXED:
        indices = [x for x in args[1] if x is not None]
        away = [x for x in away if not any(x is each for each in indices)]
        away = [x for x in away if x.dim()]  # a value of one number may be the CPU's
        masks = [x for x in indices if x.dtype in (torch.bool, torch.uint8)]
        filled = func is not aten.index.Tensor and len(args) > 2 and args[2].numel() == 1
        if any(not on_device(x) for x in indices) or (masks and not filled):
            note(func)
        if not on_device(args[0]):
            raise RuntimeError(f"{func}: an index on the device for a tensor on the CPU")
    elif torch.Tag.pointwise in func.tags:
        away = [x for x in away if x.dim()]
    if away:
        raise RuntimeError(f"{func}: tensors on the device and on the CPU")
    if func in ANSWERS:
        note(func)
