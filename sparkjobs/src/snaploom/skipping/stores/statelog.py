"""States of a skipping index in a numbered log, of which the newest counts (rules P1, P4, S24).

`_latest` is a hint, written after the fact, from which a reader probes forward; without a good one
it lists. Numbers are never freed: a state that is pruned is replaced by `PRUNED`, so that a writer
that slept over a hundred commits cannot take an old number and believe that it won.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace

from snaploom.errors import IndexBusy, NotAPlainFile, ObjectTooLarge, SkippingError
from snaploom.models.base import ApiModel
from snaploom.skipping.stores.port import NOTHING, StateNumber, StoredState
from snaploom.skipping.stores.statedocument import (
    LONGEST_STATE,
    PRUNED,
    damaged_state,
    format_state,
    parse_state,
)
from snaploom.storage.numberedlog import NumberedLog, read_hint, rebased, write_hint
from snaploom.storage.objectstore import ObjectStore

KEPT_STATES = 5
"""Newest states that pruning leaves for people to investigate."""

MOST_PRUNED = 100
"""Pruned states in a row that are asked for one by one; beyond them the log is listed."""

_NAME = re.compile(r"(\d{20})\.json")


class _Hint(ApiModel):
    version: StateNumber


class IndexCommitUnknown(SkippingError):
    """The store does not answer, so that a state may or may not have been written."""

    reason = "IndexCommitUnknown"
    retryable = True


class StateLog:
    """The states of one skipping index, below one folder of a store."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        """Open the log below a key prefix; nothing is read yet.

        Args:
            store: where the folder is.
            folder: prefix of all keys; empty, or ending in `/`.
        """
        self._store = store
        self._folder = f"{folder}manifest/"
        self._hint_key = f"{folder}_latest"
        self._log = NumberedLog(store, self._key, LONGEST_STATE, _unknown)
        self._key_of_target = folder.rstrip("/").rpartition("/")[2]
        self._known = NOTHING

    def read(self) -> StoredState:
        """The newest state; `NOTHING` where there is none.

        Raises:
            IndexUnreadable: it is damaged, lost, or of a newer format.
        """
        hint = 0
        state = self._known
        if state.version == 0:
            hint = self._read_hint()
            state = (self._state(hint) if hint else None) or self._listed()
        while (following := self._following(state)) is not None:
            state = following
        if state.version < hint:
            raise damaged_state(f"{self._store.uri}{self._key(hint)}", "nothing, though it existed")
        self._known = state
        return state

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        """Append a state, as `IndexStore.commit` specifies.

        Raises:
            IndexBusy: too many lost races.
            IndexCommitUnknown: the store does not answer any more.
            FolderNotWritable: the store refuses the state.
        """
        return rebased(lambda: self._attempt(build), self._contended)

    def _attempt(self, build: Callable[[StoredState], StoredState | None]) -> StoredState | None:
        state = self.read()
        successor = build(state)
        if successor is None:
            return state
        committed = replace(successor, version=state.version + 1)
        if not self._log.append(committed.version, format_state(committed, secrets.token_hex(8))):
            return None
        self._known = committed
        write_hint(self._store, self._hint_key, {"version": committed.version})
        return committed

    def _contended(self, races: int) -> IndexBusy:
        return IndexBusy(
            f"other writers took {races} states in a row in {self._store.uri}", hint="run again"
        )

    def states_from(self, version: int) -> list[StoredState]:
        """The states from one on that still stand, oldest first."""
        newest = self.read()
        # Listed: numbers that somebody made up may be very far from one another.
        names = (info.key.rpartition("/")[2] for info in self._store.list(self._folder))
        numbers = sorted(n for n in map(_number, names) if max(version, 1) <= n < newest.version)
        found = (self._state(number) for number in numbers)
        return [state for state in found if state is not None] + [newest]

    def prune(self, before: int) -> None:
        """Empty the states before one; the newest few always stay."""
        newest = self.read().version
        for info in list(self._store.list(self._folder)):
            number = _number(info.key.rpartition("/")[2])
            is_old = 0 < number < before and number <= newest - KEPT_STATES
            if is_old and info.size != len(PRUNED):
                self._store.put(info.key, PRUNED)

    def _following(self, state: StoredState) -> StoredState | None:
        number = state.version + 1
        while (document := self._document(number)) is not None:
            if document != PRUNED:
                return self._parsed(document, number)
            number += 1
            if number > state.version + MOST_PRUNED:
                return self._beyond(state)
        if number > state.version + 1:  # the newest state is never pruned
            raise damaged_state(f"{self._store.uri}{self._key(number)}", "nothing after old states")
        return None

    def _beyond(self, state: StoredState) -> StoredState:
        found = self._listed()
        if found.version <= state.version or (found.definition is None and not found.committed_at):
            raise damaged_state(f"{self._store.uri}{self._folder}", "nothing after old states")
        return found

    def _listed(self) -> StoredState:
        """The newest state by listing; another one may have been pruned since."""
        keys = [info.key.rpartition("/")[2] for info in self._store.list(self._folder)]
        number = max(map(_number, keys), default=0)
        return (self._state(number) or replace(NOTHING, version=number - 1)) if number else NOTHING

    def _state(self, number: int) -> StoredState | None:
        document = self._document(number)
        if document is None or document == PRUNED:
            return None
        return self._parsed(document, number)

    def _parsed(self, document: bytes, number: int) -> StoredState:
        name = f"{self._store.uri}{self._key(number)}"
        state = parse_state(document, name, self._key_of_target)
        if state.version != number:
            raise damaged_state(name, f"state {state.version}")
        return state

    def _document(self, number: int) -> bytes | None:
        try:
            return self._log.document(number)
        except (ObjectTooLarge, NotAPlainFile) as error:
            raise damaged_state(f"{self._store.uri}{self._key(number)}", error.message) from error

    def _read_hint(self) -> int:
        try:
            hint = read_hint(self._store, self._hint_key, _Hint)
        except NotAPlainFile:
            return 0
        return hint.version if hint else 0

    def _key(self, number: int) -> str:
        return f"{self._folder}{number:020d}.json"


def _number(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0


def _unknown(message: str) -> IndexCommitUnknown:
    return IndexCommitUnknown(message, hint="look at the index, and run again if needed")
