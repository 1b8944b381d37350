"""Works done in parallel, each in a thread of its own, none before those it waits for.

Threads are daemons, so that somebody who insists on leaving is not kept by what Spark is doing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

import networkx as nx

Result = TypeVar("Result")


def in_parallel(
    names: Sequence[str],
    after: Mapping[str, AbstractSet[str]],
    most: int,
    work: Callable[[str], Result],
    goes_on: Callable[[], bool],
) -> dict[str, Result]:
    """Do everything that is named; the earlier ones first, as far as that is possible.

    Args:
        names: what is to be done.
        after: by name, what must have been done before, however that ended.
        most: how many at a time.
        work: does one of them; called in a thread of its own.
        goes_on: whether more may be begun; what has begun is waited for in any case.

    Returns:
        What came of each that was begun, in the order of `names`.

    Raises:
        Exception: the first that `work` raised; nothing was begun after it.
    """
    return _Crew(names, after, most, work, goes_on).result()


class _Crew(Generic[Result]):
    def __init__(
        self,
        names: Sequence[str],
        after: Mapping[str, AbstractSet[str]],
        most: int,
        work: Callable[[str], Result],
        goes_on: Callable[[], bool],
    ) -> None:
        self._names = names
        self._waiting = list(names)
        waits = ((before, name) for name in names for before in after.get(name, ()))
        # Everything that has not ended, with edges to what waits for it.
        self._pending = nx.DiGraph(
            (one, other) for one, other in waits if one in names and one != other
        )
        self._pending.add_nodes_from(names)
        self._most = most
        self._work = work
        self._goes_on = goes_on
        self._running: set[str] = set()
        self._results: dict[str, Result] = {}
        self._failure: BaseException | None = None
        self._changed = threading.Condition()

    def result(self) -> dict[str, Result]:
        with self._changed:
            while True:
                self._begin_what_may()
                if not self._running:
                    break
                self._changed.wait()
        if self._failure is not None:
            raise self._failure
        return {name: self._results[name] for name in self._names if name in self._results}

    def _begin_what_may(self) -> None:
        while len(self._running) < self._most and self._failure is None and self._goes_on():
            name = self._next()
            if name is None:
                return
            self._waiting.remove(name)
            self._running.add(name)
            threading.Thread(
                target=self._do, args=(name,), name=f"snaploom-{name}", daemon=True
            ).start()

    def _next(self) -> str | None:
        """The first that waits for nothing more; in a circle, just the first."""
        ready = (name for name in self._waiting if not self._pending.in_degree(name))
        first = self._waiting[0] if self._waiting and not self._running else None
        return next(ready, first)

    def _do(self, name: str) -> None:
        try:
            result = self._work(name)
        except BaseException as failure:  # noqa: BLE001 - raised again in the waiting thread
            with self._changed:
                self._failure = self._failure or failure
                self._running.remove(name)
                self._changed.notify()
        else:
            with self._changed:
                self._results[name] = result
                self._running.remove(name)
                self._pending.remove_node(name)
                self._changed.notify()
