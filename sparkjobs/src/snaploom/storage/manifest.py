"""The manifest log: one commit is one put-if-absent of the next number (rules P1 to P4).

The truth is the contiguous run of entries from 1. `_latest` is a hint that is written after the
fact: it leads to a checkpoint, and betrays a lost entry, since everything up to it once existed.
A reader therefore never lists the entries; it probes from the newest checkpoint on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Annotated

from annotated_types import Ge, Le

from snaploom.errors import (
    FolderRemoved,
    ManifestCorrupt,
    ObjectNotFound,
    ObjectTooLarge,
    StorageError,
)
from snaploom.models.base import ApiModel
from snaploom.storage import layout
from snaploom.storage.checkpoints import CHECKPOINT_EVERY, newest_checkpoint, write_checkpoint
from snaploom.storage.documentparser import ENTRY, HINT, corrupt, get_bounded, parse_hint
from snaploom.storage.entries import (
    Entry,
    Publish,
    Replace,
    SnapshotRecord,
    format_entry,
    parse_entry,
)
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.pathnames import LARGEST
from snaploom.storage.records import Records
from snaploom.storage.singleput import pause, put_once
from snaploom.storage.state import EMPTY, FolderState, apply_unwritten, fold

COMMIT_ATTEMPTS = 100
"""Lost races before a commit gives up. Every lost race is another writer's success, so that only
a stream of them could reach it; twenty writers at once need at most twenty."""

FOLDED_TOGETHER = 10_000
"""Entries that are held before they are folded: folding copies the index, which takes as long as
reading some hundred entries where it has 100,000 versions."""

_log = logging.getLogger(__name__)


class CommitOutcomeUnknown(StorageError):
    """The store does not answer, so that an entry may or may not have been written."""

    reason = "CommitOutcomeUnknown"


class CommitContended(StorageError):
    """Other writers took every sequence number that was tried."""

    reason = "CommitContended"


_Number = Annotated[int, Ge(0), Le(LARGEST)]


class _Hint(ApiModel):
    seq: _Number = 0
    checkpoint: _Number = 0


class ManifestLog:
    """The log of one folder. Entries never change, so what was read once is kept."""

    def __init__(self, store: ObjectStore) -> None:
        """Open the log of a folder; nothing is read yet."""
        self._store = store
        self._beginning = FolderState(records=Records(self._record))
        self._known = self._beginning
        self._newest: tuple[int, bytes] = (0, b"")
        """Number and document of the newest entry that was read or written."""

    def read(self, at: int | None = None) -> FolderState:
        """The state now, or after entry `at`: pinned for its holder.

        Raises:
            ManifestCorrupt: an entry is damaged, missing, or contradicts the ones before it.
            FormatTooNew: an entry was written by a newer Snaploom.
            ObjectNotFound: there is no entry `at`.
        """
        if at == 0:
            return EMPTY
        known = self._known if at is None or self._known.seq <= at else self._beginning
        hint = _Hint() if known.seq else self._read_hint()
        start = known if known.seq else self._start(hint, at)
        state = self._follow(start, at)
        if at is None:
            self._refuse_gap(state, hint)
            self._known = state
        elif state.seq < at:
            raise ObjectNotFound(
                f"{self._store.uri} has no manifest entry {at}",
                found=f"{state.seq} entries",
                expected=f"a number from 1 to {state.seq}",
                hint="choose one of these, or leave the number out for the newest",
            )
        return state

    def commit(self, build: Callable[[FolderState], Entry | None]) -> FolderState:
        """Append one entry; rebased on whatever others commit meanwhile.

        Args:
            build: from the newest state, the entry with that state's `next_seq`, or None when
                there is nothing left to commit. It is called again after every lost race, and
                whatever it raises ends the commit with nothing written.

        Returns:
            The state with the entry, or the state for which `build` gave None.

        Raises:
            CommitOutcomeUnknown: the store does not answer any more.
            CommitContended: too many lost races.
            FolderNotWritable: the store refuses the entry.
            FolderRemoved: the log that it was to follow is gone.
        """
        for attempt in range(COMMIT_ATTEMPTS):
            state = self.read()
            entry = build(state)
            if entry is None:
                return state
            committed = apply_unwritten(state, entry)
            self._refuse_removed(state)
            if self._put(entry):
                if isinstance(entry, Publish | Replace):
                    committed.records.remember(entry.snapshot)
                self._known = committed
                self._after_commit(committed)
                return committed
            pause(attempt)
        raise CommitContended(
            f"other runs took {COMMIT_ATTEMPTS} sequence numbers in a row in {self._store.uri}",
            found="a lost race at every attempt",
            expected="few runs at a time in one folder",
            hint="let one resource publish into the folder, and run again",
        )

    def _start(self, hint: _Hint, at: int | None) -> FolderState:
        records = self._beginning.records
        found = newest_checkpoint(self._store, hint.checkpoint, at, records)
        return found or self._beginning

    def _follow(self, state: FolderState, at: int | None) -> FolderState:
        entries: list[Entry] = []
        seq = state.next_seq
        while at is None or seq <= at:
            entry = self._entry(seq)
            if entry is None:
                break
            entries.append(entry)
            seq += 1
            if len(entries) == FOLDED_TOGETHER:
                state, entries = fold(state, entries), []
        return fold(state, entries) if entries else state

    def _entry(self, seq: int) -> Entry | None:
        key = layout.manifest_key(seq)
        try:
            document = get_bounded(self._store, key, ENTRY)
        except ObjectNotFound:
            return None
        self._remember(seq, document)
        return parse_entry(document, f"{self._store.uri}{key}")

    def _record(self, seq: int) -> SnapshotRecord:
        """The record that an entry published.

        Raises:
            ManifestCorrupt: there is no such entry, or it publishes nothing.
        """
        entry = self._entry(seq)
        if not isinstance(entry, Publish | Replace):
            raise corrupt(
                f"{self._store.uri}{layout.manifest_key(seq)}",
                "no publication, though a checkpoint has one" if entry else "nothing",
            )
        return entry.snapshot

    def _remember(self, seq: int, document: bytes) -> None:
        if seq > self._newest[0]:
            self._newest = seq, document

    def _refuse_removed(self, state: FolderState) -> None:
        """A folder that is removed frees its numbers: no entry may follow one that is gone.

        Nor one that is another's by now, in a folder that was begun anew.
        """
        if not state.seq:
            return
        try:
            document = get_bounded(self._store, layout.manifest_key(state.seq), ENTRY)
        except ObjectNotFound:
            document = None
        known = self._newest[1] if self._newest[0] == state.seq else document
        if document is None or document != known:
            raise FolderRemoved(
                f"{self._store.uri} was removed while the run was at work",
                found=f"entry {state.seq} of the manifest is gone",
                hint="nothing was published by this run since; run again to begin the folder anew",
            )

    def _refuse_gap(self, state: FolderState, hint: _Hint) -> None:
        if state.seq < hint.seq:
            missing = f"{self._store.uri}{layout.manifest_key(state.next_seq)}"
            raise corrupt(missing, f"nothing, though {layout.LATEST} knows of entry {hint.seq}")

    def _put(self, entry: Entry) -> bool:
        """Whether the entry is in the log; False when another one has its number."""
        key, document = layout.manifest_key(entry.seq), format_entry(entry)
        is_written = put_once(self._store, key, document, _unknown)
        if is_written:
            self._remember(entry.seq, document)
        return is_written

    def _read_hint(self) -> _Hint:
        try:
            document = get_bounded(self._store, layout.LATEST, HINT)
            return parse_hint(document, layout.LATEST, _Hint)
        except ObjectNotFound:
            return _Hint()
        except (ManifestCorrupt, ObjectTooLarge):
            _log.warning("ignoring the hint %s, which is damaged", layout.LATEST)
            return _Hint()

    def _after_commit(self, state: FolderState) -> None:
        """Help later readers; none of it is needed, so that a failure is only a warning."""
        if state.seq % CHECKPOINT_EVERY == 0:
            write_checkpoint(self._store, state)
        checkpoint = state.seq - state.seq % CHECKPOINT_EVERY
        hint = json.dumps({"seq": state.seq, "checkpoint": checkpoint}).encode()
        try:
            self._store.put(layout.LATEST, hint)
        except STORE_FAILURES as error:
            _log.warning("no hint for entry %d: %s", state.seq, error.message)


def _unknown(message: str) -> CommitOutcomeUnknown:
    return CommitOutcomeUnknown(message, hint="run again: what was published is recognised")
