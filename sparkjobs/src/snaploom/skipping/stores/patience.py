"""Time limit of stores: short while a query is planned, since reading all files is safe.

Builds and commits rather wait until a store is back; the planning of a query does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WAITING_SECONDS = 10.0
"""Longest time for one answer of a remote store while somebody waits."""

_IS_AWAITED: ContextVar[bool] = ContextVar("is_awaited", default=False)


@contextmanager
def while_somebody_waits() -> Iterator[None]:
    """Let stores asked in this block, by this thread, give up early."""
    before = _IS_AWAITED.set(True)
    try:
        yield
    finally:
        _IS_AWAITED.reset(before)


def somebody_waits() -> bool:
    """Whether the store should fail soon rather than succeed late."""
    return _IS_AWAITED.get()
