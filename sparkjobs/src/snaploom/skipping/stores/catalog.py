"""Catalog of the skipping indexes of a query's relations; asked at each planning, so cheap.

A state that was read is believed for a few seconds, an absent one too, unless this process itself
committed since. The rows of a state are kept until other rows take their place; signs of life of an
operation make new states and no new rows. Nothing raises: what cannot be read is reported, and the
query runs unpruned (rule S14); a place that does not answer is not asked for a while.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from snaploom.errors import SkippingError
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.stores.bases import IndexBase
from snaploom.skipping.stores.changes import commits_noted
from snaploom.skipping.stores.patience import while_somebody_waits
from snaploom.skipping.stores.port import NOTHING, IndexStore, StoredState

BELIEVED_SECONDS = 3.0
"""How long a state is believed: what another process commits is seen after that."""

OUTAGE_SECONDS = 30.0
"""How long a place that did not answer is not asked again: queries wait once, not each of them."""

_ROOTED = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/]*)?)(/.*)?", re.DOTALL)


@dataclass(frozen=True)
class PinnedIndex:
    """An index in the state that the catalog read."""

    store: IndexStore
    """Where it is."""
    state: StoredState
    """Its state; `may_skip` holds."""
    definition: SkippingDefinition
    """Definition of the index."""


@dataclass(frozen=True)
class Problem:
    """An index that cannot be used."""

    uri: str
    """Where it is."""
    message: str
    """Why: `unreadable: ...`."""


@dataclass(frozen=True)
class Found:
    """Indexes and problems of some targets."""

    indexes: tuple[PinnedIndex, ...] = ()
    """Indexes that queries may use: nearest target first, bases in their order."""
    problems: tuple[Problem, ...] = ()
    """Indexes that are there and cannot be used."""


@dataclass(frozen=True)
class _Seen:
    at: float
    commits: int
    state: StoredState
    problem: str = ""


class IndexCatalog:
    """Finds indexes below one base or several; safe to use from several threads."""

    def __init__(
        self,
        bases: Sequence[IndexBase],
        *,
        clock: Callable[[], float] = time.monotonic,
        believed_seconds: float = BELIEVED_SECONDS,
    ) -> None:
        self._bases = tuple(bases)
        self._clock = clock
        self._believed_seconds = believed_seconds
        self._lock = threading.RLock()
        self._seen: dict[str, _Seen] = {}
        self._files: dict[str, tuple[object, FileTable]] = {}
        self._outages: dict[str, tuple[float, str]] = {}

    @property
    def bases(self) -> tuple[IndexBase, ...]:
        """Bases in order of preference."""
        return self._bases

    def find(self, target_uris: Iterable[str]) -> Found:
        """Indexes of targets and of every folder above them."""
        indexes: list[PinnedIndex] = []
        problems: list[Problem] = []
        for uri in dict.fromkeys(above for target in target_uris for above in with_above(target)):
            for base in self._bases:
                if self._outage(base.uri):
                    continue
                store = base.index(uri)
                seen = self._look(store, base)
                definition = seen.state.definition
                if seen.problem and not self._outage(base.uri):
                    problems.append(Problem(store.uri, seen.problem))
                elif definition is not None and seen.state.may_skip:
                    indexes.append(PinnedIndex(store, seen.state, definition))
        outages = ((base.uri, self._outage(base.uri)) for base in self._bases)
        problems += [Problem(place, outage) for place, outage in outages if outage]
        return Found(tuple(indexes), tuple(problems))

    def files(self, pinned: PinnedIndex) -> FileTable | Problem:
        """The rows of an index, kept for the next query; or why they cannot be read."""
        store, definition = pinned.store, pinned.definition
        rows = (pinned.state.segments, definition.indexes)
        with self._lock:
            kept = self._files.get(store.uri)
        if kept is not None and kept[0] == rows:
            return kept[1]
        outage = self._outage(store.uri)
        if outage:
            return Problem(store.uri, outage)
        try:
            with while_somebody_waits():
                files = store.open(pinned.state)
        except Exception as error:  # noqa: BLE001 # the query goes on whatever happens (rule S14)
            return Problem(store.uri, self._failed(store.uri, error))
        with self._lock:
            self._files[store.uri] = (rows, files)
        return files

    def forget(self) -> None:
        """Drop everything cached."""
        with self._lock:
            self._seen.clear()
            self._files.clear()
            self._outages.clear()

    def _outage(self, place: str) -> str:
        with self._lock:
            at, message = self._outages.get(place, (0.0, ""))
            return message if message and self._clock() - at < OUTAGE_SECONDS else ""

    def _failed(self, place: str, error: Exception) -> str:
        """Remember a place that did not answer; damage costs no time to look at again."""
        message = f"unreadable: {_message(error)}"
        if isinstance(error, SkippingError) and error.retryable:
            with self._lock:
                self._outages[place] = (self._clock(), message)
        return message

    def _look(self, store: IndexStore, base: IndexBase) -> _Seen:
        at, commits = self._clock(), commits_noted(store.uri)
        with self._lock:
            seen = self._seen.get(store.uri)
        is_fresh = seen is not None and at - seen.at < self._believed_seconds
        if seen is not None and is_fresh and seen.commits == commits:
            return seen
        try:
            with while_somebody_waits():
                seen = _Seen(at, commits, store.read())
        except Exception as error:  # noqa: BLE001 # as above
            seen = _Seen(at, commits, NOTHING, self._failed(base.uri, error))
        with self._lock:
            self._seen[store.uri] = seen
        return seen


def with_above(uri: str) -> list[str]:
    """A path and every folder above it, nearest first: `file:/a/b`, `file:/a`, `file:/`."""
    match = _ROOTED.fullmatch(uri)
    root, path = (match[1], match[2] or "") if match else ("", uri)
    names = [name for name in path.split("/") if name]
    found = [f"{root}/{'/'.join(names[:count])}" for count in range(len(names), 0, -1)]
    return [*found, f"{root}/"]


def _message(error: Exception) -> str:
    return getattr(error, "message", "") or str(error) or type(error).__name__
