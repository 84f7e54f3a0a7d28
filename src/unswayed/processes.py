"""Several processes that train one network, each on its rows of every batch.

`torchrun` starts them. Inside `sharing(B)` a process holds the images of its own rows of a batch of
B, and the labels of all. What a network says of its rows is gathered, so that every process sees
the whole batch behind the network, remembers the same and computes the same loss: a method needs
no code for several processes. The gradient of a process goes into its own rows only; the sum over
processes, which DistributedDataParallel makes, is that of the whole batch.

With one process nothing of this does anything.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import FunctionCtx

from unswayed.errors import (
    InterruptedRunError,
    LostProcessError,
    NonFiniteLossError,
    ToldElsewhereError,
    UsageError,
)

T = TypeVar("T")

PATIENCE = "UNSWAYED_PATIENCE"
"""The variable with the minutes that a process waits for another one, which may load data."""

MINUTES = "30"

_LOST = re.compile(r"gloo|NCCL|Connection|[Tt]imed out|peer|store")

_shared: list[int] = []  # rows of the batch that is shared now


def start() -> None:
    """Join the processes that torchrun started; without torchrun, do nothing."""
    if "TORCHELASTIC_RUN_ID" in os.environ and not dist.is_initialized() and dist.is_available():
        backend = "cpu:gloo"
        if torch.cuda.is_available():
            number = int(os.environ["LOCAL_RANK"])
            if number < torch.cuda.device_count():  # otherwise the device is refused by its name
                torch.cuda.set_device(number)
            backend += ",cuda:nccl"
        dist.init_process_group(backend, timeout=_patience())


def _patience() -> timedelta:
    given = os.environ.get(PATIENCE, MINUTES)
    try:
        minutes = float(given)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 60 * 24 * 30:
        raise UsageError(f"{PATIENCE} is {given!r}; set it to a number of minutes, such as 30")
    return timedelta(minutes=minutes)


def wait() -> None:
    """Wait until all processes are here."""
    if count() > 1:
        dist.barrier()


def leave(code: int) -> NoReturn:
    """End this process at once: gloo's threads now and then abort one that ends by itself."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def fails_first(*, after: float = 0.0) -> bool:
    """Return whether no other process of this start has failed before.

    Args:
        after: seconds to wait for the others, if they may know better what has happened.
    """
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    key = f"unswayed/failed/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    time.sleep(after)
    try:
        store = dist.TCPStore(*place, is_master=False, timeout=timedelta(seconds=5))  # type: ignore[attr-defined]
        return int(store.add(key, 1)) == 1
    except (RuntimeError, OSError):  # the process that keeps it is gone
        return True


def count() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if count() > 1 else 0


def cores() -> int:
    """Return this process's share of the cores of its machine, one or more."""
    return max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def is_first() -> bool:
    """Return whether this is the process that writes and speaks."""
    return rank() == 0


def sizes(rows: int) -> list[int]:
    """Return how many of these rows each process has; the first ones have one more.

    >>> from unswayed.processes import sizes
    >>> sizes(7)
    [7]
    """
    each, more = divmod(rows, count())
    return [each + (number < more) for number in range(count())]


def part(rows: int) -> slice:
    """Return which of these rows are this process's."""
    before = sizes(rows)[: rank() + 1]
    return slice(sum(before[:-1]), sum(before))


@contextmanager
def sharing(rows: int) -> Iterator[None]:
    """Share a batch of this many rows inside the block."""
    _shared.append(rows)
    try:
        yield
    finally:
        _shared.pop()


def is_sharing() -> bool:
    """Return whether a batch is shared with other processes now."""
    return bool(_shared) and count() > 1


def own(x: Tensor) -> Tensor:
    """Return this process's rows of a whole batch, or of several copies of it in a row."""
    return _own(x, _shared[-1]) if is_sharing() else x


def whole(x: Tensor) -> Tensor:
    """Return the whole batch of which x holds this process's rows.

    Every process computes the same loss from it. The gradient is that of its own rows.

    Args:
        x: (n, ...), or c copies of the rows, (c · n, ...), as for c views; (c · B, ...) comes back.
    """
    return torch.as_tensor(_Whole.apply(x, _shared[-1])) if is_sharing() else x


def keys(x: Tensor) -> Tensor:
    """Return the rows of all processes, with the gradient that all of them send back.

    For a loss of which every process computes only its own rows, against all keys.
    """
    return torch.as_tensor(_Keys.apply(x, _shared[-1])) if is_sharing() else x


def mean_over_rows(mean: Tensor) -> Tensor:
    """Return the mean over the whole batch, from the mean over this process's rows.

    The gradient is that of its own rows.
    """
    if not is_sharing():
        return mean
    rows = _shared[-1]
    return torch.as_tensor(_Sum.apply(mean * (sizes(rows)[rank()] / rows)))


def summed(x: Tensor) -> Tensor:
    """Return the sum over processes, without gradient."""
    x = x.detach().clone()
    if count() > 1:
        dist.all_reduce(x)
    return x


def total(number: int) -> int:
    """Return the sum of the processes' numbers."""
    return int(summed(torch.tensor(number))) if count() > 1 else number


def largest(number: int) -> int:
    """Return the largest of the processes' numbers."""
    if count() == 1:
        return number
    found = torch.tensor(number)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return int(found)


def from_first(value: Any) -> Any:
    """Return the value of the first process; a value that JSON can hold."""
    if count() == 1:
        return value
    text = _as_bytes(value)
    size = torch.tensor(len(text))
    dist.broadcast(size, 0)
    text = text if is_first() else torch.empty(int(size), dtype=torch.uint8)
    dist.broadcast(text, 0)
    return _from_bytes(text)


def of_all(value: Any) -> list[Any]:
    """Return the values of all processes; values that JSON can hold."""
    if count() == 1:
        return [value]
    text = _as_bytes(value)
    lengths = gathered(torch.tensor([len(text)]), [1] * count()).tolist()
    joined = torch.split(gathered(text, lengths), lengths)
    return [_from_bytes(each) for each in joined]


def first_does(work: Callable[[], T]) -> T | None:
    """Let the first process do something alone, while the others wait; they get None.

    If it fails, all fail: the first with its error, the others with `ToldElsewhereError`.
    """
    if not is_first():
        if from_first(None):
            raise ToldElsewhereError("the first process failed")
        return None
    try:
        done = work()
    except BaseException:
        from_first(True)
        raise
    from_first(False)
    return done


@contextmanager
def noticing() -> Iterator[None]:
    """Raise `LostProcessError` where a process does not answer any more."""
    try:
        yield
    except (InterruptedRunError, LostProcessError, NonFiniteLossError):
        raise  # they are RuntimeErrors as well, and may name any folder or sample
    except RuntimeError as error:  # what gloo and NCCL raise has no class of its own
        if count() > 1 and _LOST.search(str(error)):
            raise LostProcessError(
                f"another of the {count()} processes ended or does not answer"
            ) from error
        raise


def copied_from_first(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the first process's tensors; the others pass an empty dictionary."""
    if count() == 1:
        return tensors
    kinds = {name: (x.shape, str(x.dtype)) for name, x in tensors.items()}
    found = {}
    for name, (shape, kind) in from_first(kinds).items():
        dtype = getattr(torch, kind.removeprefix("torch."))
        x = tensors[name].contiguous() if name in tensors else torch.empty(shape, dtype=dtype)
        if x.numel():
            dist.broadcast(x.reshape(-1).view(torch.uint8), 0)  # gloo does not know every kind
        found[name] = x
    return found


def gathered(x: Tensor, parts: Sequence[int]) -> Tensor:
    """Return the rows of all processes one behind the other, without gradient.

    Args:
        x: (n, ...) the rows of this process.
        parts: n of every process.
    """
    if count() == 1:
        return x
    most = max(parts)
    padded = x.new_zeros(most, *x.shape[1:])
    padded[: len(x)] = x
    found = [torch.empty_like(padded) for _ in parts]
    dist.all_gather(found, padded.contiguous())
    return torch.cat([each[:size] for each, size in zip(found, parts, strict=True)])


def _as_bytes(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _from_bytes(text: Tensor) -> Any:
    return json.loads(text.numpy().tobytes())


def _own(x: Tensor, rows: int) -> Tensor:
    copies = len(x) // rows
    by_copy = x.reshape(copies, rows, *x.shape[1:])
    return by_copy[:, part(rows)].flatten(0, 1)


def _all(x: Tensor, rows: int) -> Tensor:
    parts = sizes(rows)
    copies = len(x) // parts[rank()]
    by_row = x.detach().reshape(copies, -1, *x.shape[1:]).transpose(0, 1)  # (n, copies, ...)
    return gathered(by_row.contiguous(), parts).transpose(0, 1).flatten(0, 1)


class _Whole(torch.autograd.Function):
    """All rows forward; back, the gradient of this process's rows."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, rows: int) -> Tensor:
        ctx.rows = rows  # type: ignore[attr-defined]
        return _all(x, rows)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        return _own(grad, ctx.rows), None  # type: ignore[attr-defined]


class _Keys(_Whole):
    """All rows forward; back, what all processes have to say of this process's rows."""

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        return _own(summed(grad.contiguous()), ctx.rows), None  # type: ignore[attr-defined]


class _Sum(torch.autograd.Function):
    """The sum over processes forward; back, the gradient of this process's share."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        return summed(x)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        return grad
