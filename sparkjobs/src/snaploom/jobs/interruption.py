"""Ctrl-C and SIGTERM: stop soon, and leave nothing half done.

Python runs signal handlers in the main thread between bytecodes, and a call into the JVM does not
return to bytecodes until it is done (rule P19). So the work runs in a thread of its own
while the main thread waits, looks up several times a second, and cancels Spark's jobs, upon which
the work ends by itself and cleans up. A handler only takes note: it may come in the middle of a
call into the JVM, on whose connection a second call would read the first one's answer.

Asking a second time leaves at once, without cleaning up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Generic, TypeVar

from snaploom.errors import Interrupted

Result = TypeVar("Result")

TICK_SECONDS = 0.2
"""How often the main thread looks up while it waits; people see movement, and it costs nothing."""
SAME_REQUEST_SECONDS = 1.0
"""Signals within this time are one request: a terminal sends Ctrl-C to every process of its group,
and launchers such as `uv run` pass on what their child has received already."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether somebody asked to stop, once or again."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._is_insisted_on = False

    def request(self) -> None:
        """Ask to stop; asking again, later than the same keystroke, is to stop at once."""
        now = monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first > SAME_REQUEST_SECONDS:
            self._is_insisted_on = True

    @property
    def is_requested(self) -> bool:
        """Whether somebody asked."""
        return self._first is not None

    @property
    def is_insisted_on(self) -> bool:
        """Whether somebody asked again."""
        return self._is_insisted_on

    @property
    def cause(self) -> Interrupted | None:
        """The error to report for any failure after a request; None without one."""
        if not self.is_requested:
            return None
        return Interrupted(
            "the run was interrupted",
            hint="run again; what was published stays, and nothing is half published",
        )

    def check(self) -> None:
        """Stop here if somebody asked.

        Raises:
            Interrupted: somebody did.
        """
        cause = self.cause
        if cause is not None:
            raise cause


@contextmanager
def signal_handlers() -> Iterator[Interruption]:
    """Ctrl-C and SIGTERM are requests to stop, as long as the block lasts.

    In another thread than the main one Python allows no handlers, and signals do as before.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def ask(_signal: int, _frame: FrameType | None) -> None:
        interruption.request()

    previous = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Worker(threading.Thread, Generic[Result]):
    def __init__(self, work: Callable[[], Result]) -> None:
        # A daemon, so that a second request can leave it behind.
        super().__init__(name="snaploom-work", daemon=True)
        self._work = work
        self._result: tuple[Result] | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = (self._work(),)
        except BaseException as failure:  # noqa: BLE001 - raised again in the main thread
            self._failure = failure

    def outcome(self) -> Result:
        if self._failure is not None:
            raise self._failure
        assert self._result is not None, "the thread has ended"
        return self._result[0]


def in_background(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin `work` in a thread; the result waits for its end, and returns or raises as it does."""
    worker = _Worker(work)
    worker.start()

    def outcome() -> Result:
        worker.join()
        return worker.outcome()

    return outcome


def run_interruptibly(
    work: Callable[[], Result],
    interruption: Interruption,
    cancel: Callable[[], None],
    on_tick: Callable[[], None],
) -> Result:
    """Run `work` in a thread while this one waits and looks up.

    Args:
        work: must end soon once an interruption is requested and `cancel` was called.
        interruption: from `signal_handlers`.
        cancel: ends what `work` waits for; called at every tick from a request on, since the next
            thing that is started must end as well.
        on_tick: called at every tick.

    Raises:
        Interrupted: somebody insisted; `work` is left behind.
        Exception: whatever `work` raises; what `on_tick` raises ends the work first.
    """
    worker = _Worker(work)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(TICK_SECONDS)
            if interruption.is_insisted_on:
                raise Interrupted(
                    "the run was interrupted twice and has left at once",
                    hint="run again; 'snaploom gc' removes what it was writing, nothing is half "
                    "published",
                )
            if interruption.is_requested:
                cancel()
            on_tick()
    except BaseException:
        if not interruption.is_insisted_on:
            interruption.request()
            cancel()
            worker.join()
        raise
    return worker.outcome()
