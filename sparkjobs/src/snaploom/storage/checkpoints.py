"""Checkpoints: the state after one entry as one object, so that opening does not read the log.

They are a cache. Each carries a digest of itself; one that is missing, broken or of another
format is ignored with a warning, and the log is read from an older one or from its start.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from pydantic import ValidationError

from snaploom.errors import ObjectNotFound
from snaploom.models.base import ApiModel
from snaploom.storage import layout
from snaploom.storage.entries import (
    MANIFEST_FORMAT,
    Claim,
    FolderIdentity,
    FolderSettings,
    ModelNode,
    SnapshotRecord,
    TombstoneRecord,
)
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.state import DataModelVersion, FolderState

CHECKPOINT_EVERY = 64
"""Entries between two checkpoints. Reading then costs at most 64 small reads on top of one large
one (some 10 ms on local disk, 1 to 2 s on an object store one after the other), and writing costs
a commit 1/64 of the state on average."""

CHECKPOINTS_KEPT = 2
"""The newest, and one before it in case the newest is broken."""

_log = logging.getLogger(__name__)


class _Model(ApiModel):
    model_hash: str
    first_seen: int
    nodes: tuple[ModelNode, ...]


class _Document(ApiModel):
    seq: int
    settings: FolderSettings | None = None
    identity: FolderIdentity | None = None
    snapshots: tuple[SnapshotRecord, ...]
    tombstones: tuple[TombstoneRecord, ...]
    revoked: tuple[str, ...]
    claims: tuple[Claim, ...]
    models: tuple[_Model, ...]


def format_checkpoint(state: FolderState) -> bytes:
    """The document of a state: a line with format and digest, then a line with the state."""
    body = _Document(
        seq=state.seq,
        settings=state.settings,
        identity=state.identity,
        snapshots=state.snapshots,
        tombstones=state.tombstones,
        revoked=tuple(sorted(state.revoked)),
        claims=tuple(state.claims[scope] for scope in sorted(state.claims)),
        models=tuple(
            _Model(model_hash=m.model_hash, first_seen=m.first_seen, nodes=m.nodes)
            for m in state.models
        ),
    ).dump_json()
    content = body.encode()
    head = json.dumps({"format": MANIFEST_FORMAT, "sha256": layout.content_hash(content)})
    return head.encode() + b"\n" + content + b"\n"


def parse_checkpoint(document: bytes, seq: int) -> FolderState:
    """The state in a checkpoint.

    Raises:
        ValueError: it is broken, of another format, or not of this sequence number.
    """
    head, _, body = document.partition(b"\n")
    content = body.removesuffix(b"\n")
    if json.loads(head) != {"format": MANIFEST_FORMAT, "sha256": layout.content_hash(content)}:
        raise ValueError("digest or format differs")
    parsed = _Document.model_validate_json(content, strict=True, by_alias=True, by_name=False)
    if parsed.seq != seq:
        raise ValueError(f"it holds the state of entry {parsed.seq}")
    return FolderState(
        seq=parsed.seq,
        settings=parsed.settings,
        identity=parsed.identity,
        live={record.time: record for record in parsed.snapshots},
        tombstones=parsed.tombstones,
        revoked=frozenset(parsed.revoked),
        claims={claim.scope: claim for claim in parsed.claims},
        models=tuple(DataModelVersion(m.model_hash, m.first_seen, m.nodes) for m in parsed.models),
    )


def newest_checkpoint(store: ObjectStore, hint: int, at: int | None) -> FolderState | None:
    """The newest usable checkpoint that is not after `at`.

    Args:
        store: the folder.
        hint: sequence number at which there should be a checkpoint; zero to look for one.
        at: sequence number not to go beyond.
    """
    for seq in _sequences(store, hint, at):
        try:
            return parse_checkpoint(store.get(layout.checkpoint_key(seq)), seq)
        except ObjectNotFound:
            continue
        except (ValueError, ValidationError) as error:
            _log.warning("ignoring the checkpoint %s: %s", layout.checkpoint_key(seq), error)
    return None


def write_checkpoint(store: ObjectStore, state: FolderState) -> None:
    """Write a checkpoint and remove old ones; a failure is a warning, since none is needed."""
    try:
        store.put(layout.checkpoint_key(state.seq), format_checkpoint(state))
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
