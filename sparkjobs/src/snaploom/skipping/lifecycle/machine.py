"""Flint's state machine: admission, heartbeat and recovery of operations.

An operation writes a transient phase with its token by compare-and-swap, beats while it works, and
writes the final phase only while the token still stands. Two refreshes at once: one works, the
other gets `IndexBusy` at once. An operation that has not beaten for a while is taken for dead: the
next one puts the phase back and begins. Should the dead one wake up, its commit finds another
token and changes nothing, so that a clock that goes wrong costs work and never data.

While an operation is in flight, and after it failed, definition and rows are the former ones: they
change with the final commit, all at once.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from snaploom.errors import IndexBusy, IndexNotFound, IndexOwned, SkippingError
from snaploom.files.objectstore import STORE_FAILURES
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, format_instant, now
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.lifecycle.declaration import require_form
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState

TRANSIENT = frozenset({
    IndexState.CREATING, IndexState.REFRESHING, IndexState.UPDATING, IndexState.DELETING,
    IndexState.RECOVERING, IndexState.VACUUMING,
})  # fmt: skip
"""Phases in which an operation is in flight."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timing:
    """Clock and time limits of operations."""

    clock: Callable[[], EpochNanos] = now
    heartbeat_seconds: float = 10
    """Time between two signs of life; each is a commit."""
    abandoned_after_seconds: float = 60
    """An operation without a sign of life for so long is taken for dead."""
    grace_seconds: float = 3600
    """Time for which unneeded segments stay: longer than any query plans."""

    def ago(self, seconds: float) -> EpochNanos:
        """Return the time a number of seconds ago."""
        return EpochNanos(self.clock() - int(seconds * NANOS_PER_SECOND))


USUAL = Timing()
"""The wall clock, and the patience that suits object stores."""


class Operation:
    """An operation in flight."""

    def __init__(self, store: IndexStore, token: str, started: StoredState, timing: Timing) -> None:
        self._store = store
        self._token = token
        self._timing = timing
        self.started = started
        """The transient state: definition and rows as they were before."""

    @property
    def definition(self) -> SkippingDefinition:
        """Definition when the operation began."""
        return declared(self.started, self._store)

    def finish(self, build: Callable[[StoredState], StoredState]) -> StoredState:
        """Commit `build`'s state; `IndexBusy` if another operation took this one for dead."""

        def final(state: StoredState) -> StoredState:
            if state.operation != self._token:
                raise IndexBusy(
                    f"the operation on {self._store.uri} was taken for dead by another one",
                    found=f"no sign of life for {self._timing.abandoned_after_seconds:g} s",
                )
            return replace(build(state), operation="", committed_at=self._timing.clock())

        return self._store.commit(final)

    def beat(self) -> bool:
        """Record a heartbeat; False when the operation is over."""

        def build(state: StoredState) -> StoredState | None:
            if state.operation != self._token:
                return None
            at = self._timing.clock()
            return replace(state, heartbeat_at=at, committed_at=at)

        return self._store.commit(build).operation == self._token

    def fail(self, error: BaseException) -> None:
        """Restore the former state, with the message; if that fails, the next operation does it."""

        def build(state: StoredState) -> StoredState | None:
            if state.operation != self._token:
                return None
            before = at_rest(state)
            phase = before.phase if before.phase is IndexState.DELETED else IndexState.FAILED
            is_stopped = isinstance(error, KeyboardInterrupt)
            message = "interrupted" if is_stopped else str(error) or type(error).__name__
            return replace(before, phase=phase, message=message, committed_at=self._timing.clock())

        try:
            self._store.commit(build)
        except (SkippingError, *STORE_FAILURES) as second:
            _log.warning("cannot note the failure in %s: %s", self._store.uri, second.message)


@contextmanager
def operation(
    store: IndexStore,
    phase: Callable[[StoredState], IndexState],
    admit: Callable[[StoredState], object],
    timing: Timing,
) -> Iterator[Operation]:
    """Begin an operation, beat while the body works, and restore the state when it raises.

    Raises:
        IndexBusy: another operation is in flight.
    """
    token = secrets.token_hex(8)

    def begin(state: StoredState) -> StoredState:
        before = available(state, store, timing)
        admit(before)
        at = timing.clock()
        return replace(
            before, phase=phase(before), operation=token, heartbeat_at=at, committed_at=at
        )

    running = Operation(store, token, store.commit(begin), timing)
    stopped = threading.Event()
    heart = threading.Thread(
        target=_beat, args=(running, stopped, timing), name="snaploom-heartbeat", daemon=True
    )
    heart.start()
    try:
        yield running
    except BaseException as error:
        stopped.set()
        heart.join()
        running.fail(error)
        raise
    finally:
        stopped.set()
        heart.join()


def available(state: StoredState, store: IndexStore, timing: Timing) -> StoredState:
    """Return the state at rest, restoring that of a dead operation; `IndexBusy` for a live one."""
    if state.phase in TRANSIENT and state.heartbeat_at > timing.ago(timing.abandoned_after_seconds):
        seen = format_instant(state.heartbeat_at)
        raise IndexBusy(
            f"{store.uri} is {state.phase.value}",
            found=f"an operation with its last sign of life at {seen}",
        )
    return at_rest(state)


def at_rest(state: StoredState) -> StoredState:
    """Return the state without any operation in flight or failed."""
    if state.phase in (IndexState.DELETING, IndexState.VACUUMING):
        phase = IndexState.DELETED
    elif state.phase in TRANSIENT or state.phase is IndexState.FAILED:
        phase = IndexState.EMPTY if state.refreshed_at == NEVER else IndexState.ACTIVE
    else:
        phase = state.phase
    return replace(state, phase=phase, operation="", message="")


def declared(state: StoredState, store: IndexStore) -> SkippingDefinition:
    """The definition of an index that exists.

    Raises:
        IndexNotFound: there is none, or it is dropped.
        IndexNotPossible: its form is not registered here.
    """
    if state.definition is None or not state.exists:
        raise IndexNotFound(
            f"there is no skipping index in {store.uri}",
            found="it was dropped" if state.phase is IndexState.DELETED else "nothing",
        )
    require_form(state.definition.form)
    return state.definition


def require_owner(definition: SkippingDefinition, acting_for: str) -> None:
    """Raise `IndexOwned` for anyone but the owner of an index (rule S26)."""
    if definition.owner and definition.owner != acting_for:
        raise IndexOwned(
            f"the skipping index of {definition.target.uri} is owned by {definition.owner}",
            found=f"a change in the name of {acting_for}" if acting_for else "a change by hand",
        )


def _beat(running: Operation, stopped: threading.Event, timing: Timing) -> None:
    while not stopped.wait(timing.heartbeat_seconds):
        try:
            if not running.beat():
                return
        except (SkippingError, *STORE_FAILURES) as error:
            _log.warning("no heartbeat: %s", error.message)
