"""The operations on a skipping index: create, refresh, drop, vacuum, recover, compact.

`alter` is in `snaploom.skipping.lifecycle.alteration`. Callers (SQL, Python, the command line,
jobs) call these functions and add nothing of their own. All follow Flint's state machine.

An operation writes a transient phase with its token by compare-and-swap, beats while it works, and
writes the final phase only while the token still stands. Two refreshes at once: one works, the
other gets `IndexBusy` at once. An operation that has not beaten for a while is taken for dead: the
next one puts the phase back and begins. Should the dead one wake up, its commit finds another
token and changes nothing, so that a clock that goes wrong costs work and never data.

While an operation is in flight, and after it failed, definition and rows are the former ones: they
change with the final commit, all at once.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from snaploom import errors
from snaploom.errors import IndexBusy, IndexNotFound, IndexOwned, SkippingError
from snaploom.files.objectstore import STORE_FAILURES
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, format_instant, now
from snaploom.models.skippingindex import IndexState, RefreshMode
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.lifecycle.declaration import (
    Declaration,
    FileListing,
    IndexableTarget,
    Progress,
    RefreshPlan,
    compare,
    define,
    plan_refresh,
    require_form,
)
from snaploom.skipping.stores.port import NEVER, IndexStore, Segment, StoredState

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


_REASONS = 3
"""Reasons for leaving out files that one message names."""


def silent(done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class RefreshResult:
    """Result of a refresh."""

    plan: RefreshPlan
    indexed: int
    left_out: int
    """Files about which nothing could be proved, or that changed meanwhile: they are kept."""
    state: StoredState


def create(
    store: IndexStore,
    target: IndexableTarget,
    declaration: Declaration,
    *,
    if_not_exists: bool = False,
    timing: Timing = USUAL,
) -> StoredState:
    """Declare a skipping index; nothing is built, and it prunes nothing before a refresh (rule S8).

    Raises:
        IndexAlreadyExists: the target has one.
        IndexNotPossible: something declared cannot be.
        IndexBusy: a former one is being removed.
    """

    def build(state: StoredState) -> StoredState | None:
        if state.exists:
            if if_not_exists:
                return None
            owner = state.definition.owner if state.definition else ""
            raise errors.IndexAlreadyExists(
                f"{target.target.uri} has a skipping index already",
                found=f"{store.uri}, owned by {owner}" if owner else store.uri,
                expected="no index",
            )
        available(state, store, timing)
        definition = define(declaration, target, state.next_index)
        return StoredState(
            version=state.version,
            definition=definition,
            committed_at=timing.clock(),
            next_index=state.next_index + len(definition.indexes),
        )

    return store.commit(build)


def refresh(
    store: IndexStore,
    target: IndexableTarget,
    mode: RefreshMode | None = None,
    *,
    progress: Progress = silent,
    timing: Timing = USUAL,
) -> RefreshResult:
    """Bring the rows up to date, in one commit; every user may, not only the owner (rule S26).

    Files and rows are compared first. Where they agree, nothing is built; one commit records when
    that was seen. Files that cannot be indexed are left out with a warning, unless those are all:
    then nothing is changed.

    Raises:
        IndexNotFound: there is no index, or it is dropped.
        IndexBusy: another operation is in flight; it is not waited for.
        IndexNotPossible: INCREMENTAL cannot continue, or the target lost a column.
        SkippingError: not one of the files could be indexed.
    """
    state = available(store.read(), store, timing)
    plan = _plan(store, state, target, mode)
    if not plan.is_needed and state.refreshed_at != NEVER:
        checked = _note_check(store, state, timing)
        if checked is not None:
            return RefreshResult(plan, 0, 0, checked)

    def phase(before: StoredState) -> IndexState:
        is_first = before.refreshed_at == NEVER
        return IndexState.CREATING if is_first else IndexState.REFRESHING

    with operation(store, phase, lambda before: declared(before, store), timing) as running:
        if not _same_content(running.started, state):
            plan = _plan(store, running.started, target, mode)
        segments, indexed = _build(store, target, plan, progress)
        left_out = plan.changes.to_build.num_rows - indexed
        if left_out and not indexed + plan.changes.unchanged.num_rows:
            raise errors.SkippingError(
                f"none of the {left_out} files could be indexed",
                found=_reasons(target),
                expected="files that can be read, and that nobody changes meanwhile",
            )

        def build(current: StoredState) -> StoredState:
            kept = () if plan.mode is RefreshMode.FULL else current.segments
            at = timing.clock()
            return replace(
                current,
                phase=IndexState.ACTIVE,
                definition=plan.definition,
                segments=(*kept, *segments),
                refreshed_at=at,
                checked_at=at,
                next_index=plan.next_index,
            )

        final = running.finish(build)
    _sweep(store, final, timing)
    if left_out:
        _log.warning(
            "%d of %d files could not be indexed, so queries always read them: %s",
            left_out,
            left_out + indexed,
            _reasons(target),
        )
    return RefreshResult(plan, indexed, left_out, final)


def confirm(
    store: IndexStore,
    listing: FileListing,
    mode: RefreshMode | None = None,
    *,
    timing: Timing = USUAL,
) -> RefreshResult | None:
    """Refresh an unchanged index without opening files; None if `refresh` has to decide.

    To know the columns of files Spark may have to read them: one footer, or all rows. Where neither
    the files nor the way in which they are read changed, the columns did not change either.

    Raises:
        IndexNotFound: there is no index, or it is dropped.
        IndexBusy: another operation is in flight; it is not waited for.
        KeyUnavailable: the rows are encrypted, and the key is unavailable.
    """
    state = available(store.read(), store, timing)
    definition = declared(state, store)
    is_full = (mode or definition.mode) is RefreshMode.FULL or bool(definition.why_outdated)
    if is_full or state.refreshed_at == NEVER or not listing.reads_alike(definition):
        return None
    try:
        changes = compare(listing.list_files(definition.where), store.open(state))
    except errors.IndexUnreadable:
        return None
    checked = _note_check(store, state, timing) if changes.is_empty else None
    if checked is None:
        return None
    plan = RefreshPlan(RefreshMode.INCREMENTAL, (), definition, changes, state.next_index)
    return RefreshResult(plan, 0, 0, checked)


def drop(
    store: IndexStore,
    *,
    if_exists: bool = False,
    acting_for: str = "",
    timing: Timing = USUAL,
) -> StoredState:
    """Delete the index logically, in one commit; `vacuum` removes its files.

    Raises:
        IndexNotFound: there is none.
        IndexOwned: by a resource other than `acting_for`.
        IndexBusy: another operation is in flight.
    """

    def build(state: StoredState) -> StoredState | None:
        if if_exists and not state.exists:
            return None
        before = available(state, store, timing)
        require_owner(declared(before, store), acting_for)
        return replace(before, phase=IndexState.DELETED, committed_at=timing.clock())

    return store.commit(build)


def vacuum(store: IndexStore, *, acting_for: str = "", timing: Timing = USUAL) -> StoredState:
    """Remove the files of an index that is dropped.

    Raises:
        IndexNotFound: nothing is dropped here.
        IndexOwned: by a resource other than `acting_for`.
        IndexBusy: another operation is in flight.
    """

    def admit(state: StoredState) -> None:
        if state.phase is not IndexState.DELETED or state.definition is None:
            raise errors.IndexNotFound(
                f"there is no dropped skipping index in {store.uri}",
                found=f"state {state.phase.value}",
                hint="drop it first",
            )
        require_form(state.definition.form)
        require_owner(state.definition, acting_for)

    with operation(store, lambda _: IndexState.VACUUMING, admit, timing) as running:
        store.destroy()
        return running.finish(
            lambda state: StoredState(version=state.version, next_index=state.next_index)
        )


def recover(store: IndexStore, *, timing: Timing = USUAL) -> StoredState:
    """Clean up after an operation that failed or died, and see that the rows can be read.

    Rows that cannot be read are given up: the index is empty then, and prunes nothing until it is
    refreshed.

    Raises:
        IndexNotFound: there is none.
        IndexBusy: an operation is in flight and has shown signs of life.
        KeyUnavailable: it is encrypted, and the key is unavailable.
    """
    with operation(
        store, lambda _: IndexState.RECOVERING, lambda before: declared(before, store), timing
    ) as running:
        message = ""
        try:
            store.open(running.started)
        except errors.IndexUnreadable as error:
            message = f"the rows were given up: {error.message}"

        def build(state: StoredState) -> StoredState:
            if message or state.refreshed_at == NEVER:
                return replace(
                    state,
                    phase=IndexState.EMPTY,
                    segments=(),
                    refreshed_at=NEVER,
                    message=message,
                )
            return replace(state, phase=IndexState.ACTIVE)

        final = running.finish(build)
    _sweep(store, final, timing)
    return final


def compact(store: IndexStore, *, timing: Timing = USUAL) -> StoredState:
    """Rewrite small segments as one; queries see the same rows.

    Raises:
        IndexNotFound: there is none.
        IndexBusy: another operation is in flight.
        IndexUnreadable: a segment is damaged or absent.
        KeyUnavailable: it is encrypted, and the key is unavailable.
    """
    with operation(
        store, lambda _: IndexState.UPDATING, lambda before: declared(before, store), timing
    ) as running:
        segments = store.compact(running.started)

        def build(state: StoredState) -> StoredState:
            is_empty = state.refreshed_at == NEVER
            phase = IndexState.EMPTY if is_empty else IndexState.ACTIVE
            return replace(state, phase=phase, segments=segments)

        final = running.finish(build)
    _sweep(store, final, timing)
    return final


def _plan(
    store: IndexStore, state: StoredState, target: IndexableTarget, mode: RefreshMode | None
) -> RefreshPlan:
    definition = declared(state, store)
    asked = mode or definition.mode
    listing = target.list_files(definition.where)
    return plan_refresh(store, state, definition, target, asked, listing)


def _note_check(store: IndexStore, seen: StoredState, timing: Timing) -> StoredState | None:
    """Record that files and rows agree; None when the rows changed meanwhile."""

    def build(state: StoredState) -> StoredState | None:
        before = available(state, store, timing)
        if not _same_content(before, seen):
            return None
        at = timing.clock()
        return replace(before, checked_at=at, committed_at=at)

    noted = store.commit(build)
    return noted if _same_content(noted, seen) else None


def _same_content(one: StoredState, other: StoredState) -> bool:
    return (one.definition, one.segments) == (other.definition, other.segments)


def _build(
    store: IndexStore, target: IndexableTarget, plan: RefreshPlan, progress: Progress
) -> tuple[list[Segment], int]:
    segments: list[Segment] = []
    if len(plan.changes.removed):
        paths: list[str] = plan.changes.removed.to_pylist()
        segments.append(store.write_removed(paths, plan.definition))
    files = plan.changes.to_build
    if not files.num_rows:
        return segments, 0
    rows = target.build(plan.definition.indexes, files, progress)
    written = store.write_rows(rows, plan.definition)
    return [*segments, *written], sum(segment.rows for segment in written)


def _reasons(target: IndexableTarget) -> str:
    """Reasons why files were left out, each once, with one file that it concerns."""
    by_reason: dict[str, str] = {}
    for path, why in sorted(target.left_out.items()):
        by_reason.setdefault(why, path)
    reasons = [f"{path}: {why}" for why, path in by_reason.items()]
    more = f"; and {len(reasons) - _REASONS} other reasons" if len(reasons) > _REASONS else ""
    return "; ".join(reasons[:_REASONS]) + more or "no statistics could be computed"


def _sweep(store: IndexStore, state: StoredState, timing: Timing) -> None:
    """Remove unneeded rows; the next operation tries again when it fails."""
    try:
        store.sweep(state, timing.ago(timing.grace_seconds))
    except (errors.SkippingError, *STORE_FAILURES) as error:
        _log.warning("cannot sweep %s: %s", store.uri, error.message)
