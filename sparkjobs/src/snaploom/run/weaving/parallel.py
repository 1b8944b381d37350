"""Several works at a time in threads, each ended in its turn."""

import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import Generic, TypeVar

import networkx as nx

from snaploom.run.runevents import TICK_SECONDS

# Works done in parallel, each in a thread of its own, none before those it waits for.

Result = TypeVar("Result")


def in_parallel(
    names: Sequence[str],
    after: Mapping[str, AbstractSet[str]],
    most: int,
    work: Callable[[str], Result],
    goes_on: Callable[[], bool],
) -> dict[str, Result]:
    """Do everything that is named, each in its own thread, earlier ones first where possible.

    One waits for those named in `after`, however they ended. What has begun is waited for also when
    it no longer `goes_on`. Gives the result of each that was begun, in the order of `names`.
    """
    waits = ((before, name) for name in names for before in after.get(name, ()))
    # Everything that has not ended, with edges to what waits for it.
    pending = nx.DiGraph((one, other) for one, other in waits if one in names and one != other)
    pending.add_nodes_from(names)
    waiting, running = list(names), set[str]()
    results: dict[str, Result] = {}
    failures: list[BaseException] = []
    changed = threading.Condition()

    def do(name: str) -> None:
        try:
            result = work(name)
        except BaseException as failure:  # noqa: BLE001 - raised again in the waiting thread
            with changed:
                failures.append(failure)
                running.remove(name)
                changed.notify()
        else:
            with changed:
                results[name] = result
                running.remove(name)
                pending.remove_node(name)
                changed.notify()

    def following() -> str | None:
        """The first that waits for nothing more; in a circle, just the first."""
        ready = (name for name in waiting if not pending.in_degree(name))
        return next(ready, waiting[0] if waiting and not running else None)

    with changed:
        while True:
            while len(running) < most and not failures and goes_on():
                name = following()
                if name is None:
                    break
                waiting.remove(name)
                running.add(name)
                threading.Thread(
                    target=do, args=(name,), name=f"snaploom-{name}", daemon=True
                ).start()
            if not running:
                break
            changed.wait()
    if failures:
        raise failures[0]
    return {name: results[name] for name in names if name in results}


# Numbered works of which several are under way, while each waits for its turn before it ends.


class Turn:
    """Waits, when called, until everything before a work has ended."""

    def __init__(self, wait: Callable[[], None] = lambda: None) -> None:
        self._wait = wait
        self.seconds = 0.0
        """Time spent waiting."""

    def __call__(self) -> None:
        """Wait."""
        before = monotonic()
        self._wait()
        self.seconds += monotonic() - before


class OrderedWork(Generic[Result]):
    """Works from 0 on, each in a thread of its own where several are allowed."""

    def __init__(
        self,
        work: Callable[[int, Turn], Result],
        count: int,
        most: int,
        may_begin: Callable[[int, AbstractSet[int]], bool],
        cancel: Callable[[], None],
    ) -> None:
        """Nothing has begun.

        Args:
            work: does one of them; calls its turn before anything that depends on earlier ones.
            count: their number.
            most: maximum number under way; with 1, they are done in the thread that asks.
            may_begin: whether one may begin while others, given by number, are under way.
            cancel: ends soon what is under way; called again until all have ended.
        """
        self._work = work
        self._count = count
        self._most = most
        self._may_begin = may_begin
        self._cancel = cancel
        self._threads: dict[int, threading.Thread] = {}
        self._results: dict[int, Result] = {}
        self._failures: dict[int, BaseException] = {}
        self._turn = -1
        self._is_closed = False
        self._changed = threading.Condition()

    def outcome(self, number: int) -> Result:
        """Let a work have its turn, and wait for its end; call it in ascending order.

        A work that is left out never has its turn, and neither begins nor ends any more.
        """
        if self._most == 1:
            return self._work(number, Turn())
        with self._changed:
            self._turn = number
            self._changed.notify_all()
            while number not in self._results and number not in self._failures:
                self._begin_what_may()
                self._changed.wait()
        if number in self._failures:
            raise self._failures[number]
        return self._results.pop(number)

    def close(self) -> None:
        """End what is under way, whose turn will not come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads.values():
            while thread.is_alive():
                self._cancel()
                thread.join(TICK_SECONDS)

    def _begin_what_may(self) -> None:
        first = max([self._turn, *(number + 1 for number in self._threads)])
        for number in range(first, min(self._turn + self._most, self._count)):
            under_way = self._threads.keys() - self._results.keys() - self._failures.keys()
            under_way = {other for other in under_way if other >= self._turn}
            if number != self._turn and not self._may_begin(number, under_way):
                return
            thread = self._threads[number] = threading.Thread(
                target=self._do, args=(number,), name=f"snaploom-work-{number}", daemon=True
            )
            thread.start()

    def _do(self, number: int) -> None:
        try:
            result = self._work(number, Turn(lambda: self._await_turn(number)))
        except BaseException as failure:  # noqa: BLE001 - raised again where its end is waited for
            with self._changed:
                self._failures[number] = failure
                self._changed.notify_all()
        else:
            with self._changed:
                self._results[number] = result
                self._changed.notify_all()

    def _await_turn(self, number: int) -> None:
        with self._changed:
            self._changed.notify_all()  # others may begin, now that this one has got so far
            self._changed.wait_for(lambda: self._is_closed or self._turn >= number)
            if self._turn != number:
                raise _TurnGone


class _TurnGone(Exception):
    """The turn of a work will not come; nobody sees this."""
