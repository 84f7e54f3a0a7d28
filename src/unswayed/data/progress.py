"""How data that take long to load say so: whoever wants to show progress listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Called with what is done, how much of it is done, and how much there is."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear of everything loaded inside the block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Tell the listener, if there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)
