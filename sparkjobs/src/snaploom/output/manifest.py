"""The manifest log: numbered entries, the state they fold to, and schemas beside it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le

from snaploom.errors import FolderRemoved, ObjectAlreadyExists, ObjectNotFound, StorageError
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.models.base import ApiModel
from snaploom.models.common import LARGEST
from snaploom.output import documents, entries, layout
from snaploom.output.checkpoints import CHECKPOINT_EVERY, newest_checkpoint, write_checkpoint
from snaploom.output.state import EMPTY, FolderState, Records, apply_unwritten, fold
from snaploom.types.schemas import parse_schema

if TYPE_CHECKING:
    from snaploom.plan.tree import JoinTree

_log = logging.getLogger(__name__)


# Schemas and data models as documents beside the log (rule P13).


def read_schema(store: ObjectStore, schema_hash: str) -> str:
    """Read a schema document, as `StructType.json()` gives it.

    Raises:
        ObjectNotFound: it is not there.
        ManifestCorrupt: it does not match its name, or no schema of types that are Spark's own.
    """
    key = layout.schema_key(schema_hash)
    content = documents.get_bounded(store, key, documents.DOCUMENT)
    if layout.content_hash(content) != schema_hash:
        raise documents.corrupt(f"{store.uri}{key}", "a document that does not match its name")
    try:
        text = content.decode("utf-8")
        documents.parse_json(content, f"{store.uri}{key}", documents.DOCUMENT)
        parse_schema(text, "")
    except ValueError as error:
        raise documents.corrupt(f"{store.uri}{key}", str(error)) from error
    return text


def store_schema(store: ObjectStore, schema: str) -> str:
    """Store a schema document; returns its hash."""
    content = schema.encode()
    schema_hash = layout.content_hash(content)
    put_content(store, layout.schema_key(schema_hash), content)
    return schema_hash


def store_model(store: ObjectStore, nodes: tuple[entries.ModelNode, ...]) -> str:
    """Store a data model; returns its hash."""
    content = _model_document(nodes)
    model_hash = layout.content_hash(content)
    put_content(store, layout.data_model_key(model_hash), content)
    return model_hash


def model_nodes(tree: JoinTree) -> tuple[entries.ModelNode, ...]:
    """The tree as the manifest keeps it."""
    return tuple(
        entries.ModelNode.model_validate(node, from_attributes=True) for node in tree.nodes
    )


def store_merged_model(store: ObjectStore, state: FolderState) -> None:
    """Write the merged model for people if the last entry added to it; the log is authoritative."""
    if state.models[-1].first_seen != state.seq:
        return
    try:
        store.put(layout.MERGED_DATA_MODEL, _model_document(tuple(state.merged_model.values())))
    except STORE_FAILURES as error:
        _log.warning("%s is not up to date: %s", layout.MERGED_DATA_MODEL, error.message)


def _model_document(nodes: tuple[entries.ModelNode, ...]) -> bytes:
    document = {"format": documents.MANIFEST_FORMAT, "nodes": [node.dump() for node in nodes]}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def put_content(store: ObjectStore, key: str, content: bytes) -> None:
    """Put a document whose key follows from its content; an existing one stays."""
    try:
        store.put_if_absent(key, content)
    except ObjectAlreadyExists:
        return


# The manifest log: entries in a numbered log, and the state that they fold to (rules P1 to P4).

FOLDED_TOGETHER = 10_000
"""Entries that are held before they are folded: folding copies the index, which takes as long as
reading some hundred entries where it has 100,000 versions."""


class CommitOutcomeUnknown(StorageError):
    """The store does not answer, so that an entry may or may not have been written."""


class CommitContended(StorageError):
    """Other writers took every sequence number that was tried."""


_Number = Annotated[int, Ge(0), Le(LARGEST)]


class _Hint(ApiModel):
    seq: _Number = 0
    checkpoint: _Number = 0


class ManifestLog:
    """The log of one folder. Entries never change, so what was read once is kept."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._log = documents.NumberedLog(
            store, layout.manifest_key, documents.ENTRY.length, CommitOutcomeUnknown
        )
        self._beginning = FolderState(records=Records(self._record))
        self._known = self._beginning
        self._newest: tuple[int, bytes] = (0, b"")
        """Number and document of the newest entry that was read or written."""

    def read(self, at: int | None = None) -> FolderState:
        """The state now, or after entry `at`: pinned for its holder.

        Raises:
            ManifestCorrupt: an entry is damaged, missing, or contradicts the ones before it.
            FormatTooNew: an entry was written by a newer Snaploom.
        """
        if at == 0:
            return EMPTY
        known = self._known if at is None or self._known.seq <= at else self._beginning
        hint = (
            _Hint()
            if known.seq
            else (documents.read_hint(self._store, layout.LATEST, _Hint) or _Hint())
        )
        start = known if known.seq else self._start(hint, at)
        state = self._follow(start, at)
        if at is None:
            if state.seq < hint.seq:
                missing = f"{self._store.uri}{layout.manifest_key(state.next_seq)}"
                raise documents.corrupt(
                    missing, f"nothing, though {layout.LATEST} knows of entry {hint.seq}"
                )
            self._known = state
        elif state.seq < at:
            raise ObjectNotFound(
                f"{self._store.uri} has no manifest entry {at}",
                found=f"{state.seq} entries",
                expected=f"a number from 1 to {state.seq}",
                hint="choose one of these, or leave the number out for the newest",
            )
        return state

    def follow(self, earlier: ManifestLog) -> None:
        """Begin with an earlier log's knowledge, if the folder still has its entries.

        Its newest entry proves that: no two have the same document, and none ever changes. Records
        that it has not read are read by this log, with this store's credentials.
        """
        state, (seq, document) = earlier._known, earlier._newest
        if 0 < seq == state.seq and self._log.document(seq) == document:
            self._known = replace(state, records=state.records.read_by(self._record))
            self._newest = earlier._newest

    def commit(self, build: Callable[[FolderState], entries.Entry | None]) -> FolderState:
        """Append one entry; rebased on other commits.

        Args:
            build: from the newest state, the entry with that state's `next_seq`, or None when
                there is nothing left to commit. It is called again after every lost race, and
                whatever it raises ends the commit with nothing written.

        Returns:
            The state with the entry, or the state for which `build` gave None.

        Raises:
            CommitOutcomeUnknown: the store does not answer any more.
            CommitContended: too many lost races.
            FolderRemoved: the log that it was to follow is gone.
        """
        return documents.rebased(lambda: self._attempt(build), contended(self._store.uri))

    def _attempt(self, build: Callable[[FolderState], entries.Entry | None]) -> FolderState | None:
        state = self.read()
        entry = build(state)
        if entry is None:
            return state
        committed = apply_unwritten(state, entry)
        self._refuse_removed(state)
        document = entries.format_entry(entry)
        if not self._log.append(entry.seq, document):
            return None
        self._remember(entry.seq, document)
        if isinstance(entry, entries.Publish | entries.Replace):
            committed.records.remember(entry.snapshot)
        self._known = committed
        if committed.seq % CHECKPOINT_EVERY == 0:
            write_checkpoint(self._store, committed)
        checkpoint = committed.seq - committed.seq % CHECKPOINT_EVERY
        hint = {"seq": committed.seq, "checkpoint": checkpoint}
        documents.write_hint(self._store, layout.LATEST, hint)
        return committed

    def _start(self, hint: _Hint, at: int | None) -> FolderState:
        records = self._beginning.records
        found = newest_checkpoint(self._store, hint.checkpoint, at, records)
        return found or self._beginning

    def _follow(self, state: FolderState, at: int | None) -> FolderState:
        read: list[entries.Entry] = []
        following = self._log.after(state.seq)
        limit = None if at is None else max(at - state.seq, 0)
        for seq, document in enumerate(islice(following, limit), start=state.next_seq):
            read.append(self._parsed(seq, document))
            if len(read) == FOLDED_TOGETHER:
                state, read = fold(state, read), []
        return fold(state, read) if read else state

    def _parsed(self, seq: int, document: bytes) -> entries.Entry:
        self._remember(seq, document)
        return entries.parse_entry(document, f"{self._store.uri}{layout.manifest_key(seq)}")

    def _record(self, seq: int) -> entries.SnapshotRecord:
        document = self._log.document(seq)
        entry = None if document is None else self._parsed(seq, document)
        if not isinstance(entry, entries.Publish | entries.Replace):
            raise documents.corrupt(
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
        document = self._log.document(state.seq)
        known = self._newest[1] if self._newest[0] == state.seq else document
        if document is None or document != known:
            raise FolderRemoved(
                f"{self._store.uri} was removed while the run was at work",
                found=f"entry {state.seq} of the manifest is gone",
                hint="nothing was published by this run since; run again to begin the folder anew",
            )


def contended(place: str) -> Callable[[int], CommitContended]:
    """Build the error after many lost races for a place, from their number."""
    return lambda races: CommitContended(
        f"other writers committed {races} times in a row to {place}",
        found="a lost race at every attempt",
        expected="few writers at a time in one place",
    )
