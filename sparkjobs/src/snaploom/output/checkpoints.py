"""Checkpoints: the state after one entry as one object, so that opening skips the log.

They are a cache. Each carries a digest of itself; one that is missing, broken or of another
format is ignored with a warning, and the log is read from an older one or from its start.

Of every version a checkpoint has what decides about commits, in columns (50 bytes each: 100,000 are
read in a tenth of a second); of those published last it has the whole record, too.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import ValidationError

from snaploom.confidential import visible
from snaploom.errors import ManifestCorrupt, ObjectNotFound, ObjectTooLarge
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.output import documents, layout
from snaploom.output.entries import Claim, DataModel, FolderIdentity, FolderSettings
from snaploom.output.layout import Count, Hash, Line, Nanos, PartitionName, RunId, Versions
from snaploom.output.layout import Sequence as Number
from snaploom.output.state import DataModelVersion, Ended, FolderState, Records, Version

_log = logging.getLogger(__name__)

CHECKPOINT_EVERY = 64
"""Entries between two checkpoints. Reading then costs at most 64 small reads on top of one large
one (some 10 ms on local disk, 1 to 2 s on an object store one after the other), and writing costs
a commit 1/64 of the index on average."""

CHECKPOINTS_KEPT = 2
"""The newest, and one before it in case the newest is broken."""

CHECKPOINT_FAILURES = (ValueError, ManifestCorrupt, ObjectTooLarge)
"""Errors of reading and parsing a checkpoint that cannot be used."""

RECORDS_KEPT = 4096
"""Whole records in a checkpoint: those published last, 5 MB at some 1.2 KB each. A reader of a
history as long finds all of them with one read; older ones are read from their entries."""


RECORDS_LENGTH = 32 * 2**20
"""Bytes of whole records at most, so that those with many files do not make every opening slow:
the newest that fit."""

LAST_ENTRY = 10**15
"""Number of the last entry that a checkpoint may be of: more have numbers that can be written."""

_Moments = Annotated[tuple[Nanos, ...], Versions]
_Numbers = Annotated[tuple[Number, ...], Versions]
_Places = Annotated[tuple[Count, ...], Versions]
_Partitions = Annotated[tuple[PartitionName, ...], Versions]


class _Model(ApiModel):
    model_hash: Hash
    first_seen: Number
    nodes: DataModel


class _Live(ApiModel):
    time: _Moments
    seq: _Numbers
    created_at: _Moments
    partition: _Partitions
    schema_hash: _Places
    model_hash: _Places


class _Ended(ApiModel):
    time: _Moments
    partition: _Partitions
    published_seq: _Numbers
    seq: _Numbers
    rule: Annotated[tuple[Line, ...], Versions]
    deleted_at: _Moments


class _Document(ApiModel):
    seq: Annotated[int, Ge(1), Le(LAST_ENTRY)]
    settings: FolderSettings | None = None
    identity: FolderIdentity | None = None
    reader_grace: TimeOffset | None = None
    revoked: tuple[RunId, ...]
    claims: tuple[Claim, ...]
    models: tuple[_Model, ...]
    hashes: tuple[Hash, ...]
    live: _Live
    ended: _Ended
    records: tuple[Number, ...]
    """Numbers of the entries whose records follow, a line each."""


def format_checkpoint(state: FolderState) -> bytes:
    """Format a state: a line with format and digest, one with the index, then records."""
    hashes = {
        h: n
        for n, h in enumerate(
            sorted({h for v in state.versions.values() for h in (v.schema_hash, v.model_hash)})
        )
    }
    lines = _lines(state)
    ordered = state.timeline
    body = _Document(
        seq=state.seq,
        settings=state.settings,
        identity=state.identity,
        reader_grace=state.reader_grace,
        revoked=tuple(sorted(state.revoked)),
        claims=tuple(state.claims[scope] for scope in sorted(state.claims)),
        models=tuple(
            _Model(model_hash=m.model_hash, first_seen=m.first_seen, nodes=m.nodes)
            for m in state.models
        ),
        hashes=tuple(hashes),
        live=_Live(
            time=tuple(v.time for v in ordered),
            seq=tuple(v.seq for v in ordered),
            created_at=tuple(v.created_at for v in ordered),
            partition=tuple(v.partition for v in ordered),
            schema_hash=tuple(hashes[v.schema_hash] for v in ordered),
            model_hash=tuple(hashes[v.model_hash] for v in ordered),
        ),
        ended=_Ended(
            time=tuple(e.time for e in state.ended),
            partition=tuple(e.partition for e in state.ended),
            published_seq=tuple(e.published_seq for e in state.ended),
            seq=tuple(e.seq for e in state.ended),
            rule=tuple(e.rule for e in state.ended),
            deleted_at=tuple(e.deleted_at for e in state.ended),
        ),
        records=tuple(lines),
    ).model_dump_json(by_alias=True, exclude_none=True)
    content = b"\n".join((body.encode(), *lines.values()))
    head = json.dumps({"format": documents.MANIFEST_FORMAT, "sha256": layout.content_hash(content)})
    return head.encode() + b"\n" + content + b"\n"


def parse_checkpoint(document: bytes, seq: int, records: Records) -> FolderState:
    """Parse the state in a checkpoint; its records are kept in `records`.

    Raises:
        ManifestCorrupt: it has more than it may have.
    """
    name = layout.checkpoint_key(seq)
    head, _, body = document.partition(b"\n")
    content = body.removesuffix(b"\n")
    digest = {"format": documents.MANIFEST_FORMAT, "sha256": layout.content_hash(content)}
    if documents.parse_json(head, name, documents.HINT) != digest:
        raise ValueError("digest or format differs")
    index, *lines = content.split(b"\n", RECORDS_KEPT + 1)
    documents.refuse_many(index, name, documents.CHECKPOINT)
    parsed = _Document.model_validate_json(index, strict=True, by_alias=True, by_name=False)
    if parsed.seq != seq:
        raise ValueError(f"it holds the state of entry {parsed.seq}")
    found = list(zip(parsed.records, lines, strict=True))
    versions = list(_versions(parsed.live, parsed.hashes))
    if {version.model_hash for version in versions} - {m.model_hash for m in parsed.models}:
        raise ValueError("a version with a data model that it does not have")
    for number, line in found:
        records.remember_line(number, line)
    rows = zip(
        map(EpochNanos, parsed.ended.time),
        parsed.ended.partition,
        parsed.ended.published_seq,
        parsed.ended.seq,
        parsed.ended.rule,
        map(EpochNanos, parsed.ended.deleted_at),
        strict=True,
    )
    return FolderState(
        seq=parsed.seq,
        settings=parsed.settings,
        identity=parsed.identity,
        reader_grace=parsed.reader_grace,
        versions={version.time: version for version in versions},
        ended=tuple(starmap(Ended, rows)),
        revoked=frozenset(parsed.revoked),
        claims={claim.scope: claim for claim in parsed.claims},
        models=tuple(DataModelVersion(m.model_hash, m.first_seen, m.nodes) for m in parsed.models),
        records=records,
    )


def _lines(state: FolderState) -> dict[int, bytes]:
    published = chain(
        (version.seq for version in state.versions.values()),
        (ended.published_seq for ended in state.ended),
    )
    newest = sorted(published, reverse=True)[:RECORDS_KEPT]
    lines: dict[int, bytes] = {}
    room = RECORDS_LENGTH
    for seq in newest:
        line = state.records.line(seq)
        if line is not None:
            room -= len(line)
            if room < 0:
                break
            lines[seq] = line
    return dict(sorted(lines.items()))


def _versions(columns: _Live, hashes: Sequence[str]) -> Iterator[Version]:
    named = max((*columns.schema_hash, *columns.model_hash), default=-1)
    if named >= len(hashes):
        raise ValueError(f"no hash {named} among {len(hashes)}")
    rows = zip(
        map(EpochNanos, columns.time),
        columns.seq,
        map(EpochNanos, columns.created_at),
        columns.partition,
        (hashes[number] for number in columns.schema_hash),
        (hashes[number] for number in columns.model_hash),
        strict=True,
    )
    return starmap(Version, rows)


def newest_checkpoint(
    store: ObjectStore, hint: int, at: int | None, records: Records
) -> FolderState | None:
    """The newest usable checkpoint not after `at`; a `hint` of zero means to look for one."""
    for seq in _sequences(store, hint, at):
        try:
            return read_checkpoint(store, seq, records)
        except ObjectNotFound:
            continue
        except CHECKPOINT_FAILURES as error:
            why = checkpoint_fault(error)
            _log.warning("ignoring the checkpoint %s: %s", layout.checkpoint_key(seq), why)
    return None


def read_checkpoint(store: ObjectStore, seq: int, records: Records) -> FolderState:
    """The state in the checkpoint of an entry; arguments and result as for `parse_checkpoint`.

    Raises:
        ObjectNotFound: there is none.
        ValueError, ManifestCorrupt, ObjectTooLarge: it cannot be used.
    """
    document = documents.get_bounded(store, layout.checkpoint_key(seq), documents.CHECKPOINT)
    return parse_checkpoint(document, seq, records)


def checkpoint_fault(error: Exception) -> str:
    """Fault of a checkpoint, on one line."""
    if isinstance(error, ValidationError):
        return visible(documents.first_fault(error))
    return visible(str(getattr(error, "found", None) or error))


def write_checkpoint(store: ObjectStore, state: FolderState) -> None:
    """Write a checkpoint and remove old ones; a failure is a warning, since none is needed."""
    try:
        document = format_checkpoint(state)
        if len(document) > documents.CHECKPOINT.length:
            _log.warning("no checkpoint at entry %d, which would be too long", state.seq)
            return
        store.put(layout.checkpoint_key(state.seq), document)
        old = [seq for seq in _listed(store) if seq <= state.seq][CHECKPOINTS_KEPT:]
        store.delete(layout.checkpoint_key(seq) for seq in old)
    except STORE_FAILURES as error:
        _log.warning("no checkpoint at entry %d: %s", state.seq, error.message)


def _sequences(store: ObjectStore, hint: int, at: int | None) -> Iterator[int]:
    if hint and (at is None or hint <= at):
        yield hint
    yield from (seq for seq in _listed(store) if seq != hint and (at is None or seq <= at))


def _listed(store: ObjectStore) -> list[int]:
    sequences = (layout.sequence_of(info.key) for info in store.list(layout.CHECKPOINTS))
    return sorted((seq for seq in sequences if seq is not None), reverse=True)
