"""Removes a bounded number of unneeded files at the end of a run, found without listing.

`snaploom gc` lists a folder and finds all that is left over. A run must not take time for that
which grows with the folder, so that it is taken from the log: versions that ended, in the order in
which they did, from the first whose files may still be there. Which one that is stands in a hint.
When that is lost, files that are gone are removed again, a bounded number a run, which harms
nothing. Staging is listed: it has what runs are writing, and what dead ones wrote.

The rules are those of `storage.gc`. Files of ended versions are dead by name (rule P10), and go
when their readers' grace has passed, by the store's clock (rule P18). Runs whose staging is old are
revoked before it is touched (rule P11).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from snaploom.errors import ManifestCorrupt, ObjectNotFound, ObjectTooLarge
from snaploom.models.base import ApiModel
from snaploom.models.times import EpochNanos
from snaploom.storage import layout
from snaploom.storage.documentparser import HINT, get_bounded, parse_hint
from snaploom.storage.entries import TombstoneRecord
from snaploom.storage.folder import Folder
from snaploom.storage.gc import (
    Garbage,
    Verdict,
    collect_garbage,
    ended_at,
    find_garbage,
    promised_grace,
)
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.pathnames import Count, Nanos
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import CrashPoint, Run

VERSIONS_A_RUN = 100
"""Ended versions that one run removes at most. Usually one ends for one that is published; a
hundred take some seconds on an object store (a request or two each, 10 to 20 ms)."""
FILES_A_RUN = 2000
"""Files likewise; of one version more, when it has more."""
SILENCE = 86_400 * 1_000_000_000
"""Nanoseconds after which a run that wrote nothing into staging is taken for dead: a day. Nobody
asked for its revocation, as with `snaploom gc`, and no task of Spark writes one file as long."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Swept:
    """Removed versions, and those that stay for now."""

    snapshots: int = 0
    """Ended versions whose files are removed."""
    files: int = 0
    """Files of them, and those that dead runs left in staging."""
    bytes: int = 0
    """Size of all these."""
    waiting: int = 0
    """Ended versions whose files stay for now."""


def store_present(store: ObjectStore, state: FolderState, now: EpochNanos) -> EpochNanos:
    """Return a time not later than the store's own, right after an entry was written."""
    newest = store.head(layout.manifest_key(state.seq))
    return now if newest is None else min(now, newest.modified)


def waiting(store: ObjectStore, state: FolderState) -> int:
    """Number of ended versions whose files may still be there."""
    return len(state.ended) - _position(store, state)


def sweep(
    folder: Folder,
    run: Run,
    present: EpochNanos,
    *,
    versions: int = VERSIONS_A_RUN,
    files: int = FILES_A_RUN,
    silence: int = SILENCE,
) -> Swept:
    """Remove files of ended versions, and staging of runs silent for `silence` nanoseconds.

    Raises:
        SnapshotsHeld: a tag or branch of the output's Iceberg table shows an ended version.
        FolderNotWritable, StorageError: the folder refuses a deletion; what is done is done.
    """
    state = folder.read()
    store = folder.store
    position = _position(store, state)
    horizon = present - promised_grace(state, present)
    over = list(_within(files, _over(store, state, position, versions, horizon)))
    folder.forget(over, run)
    for ended in over:
        # No name is ever live again (rule P10); what would be is not touched.
        store.delete([file.path for file in ended.files if not state.is_live(file.path)])
        run.reached(CrashPoint.DURING_DELETION)
    if over:
        _remember(store, state, position + len(over))
    staged = find_garbage(store, state, present, silence, layout.STAGING)
    old = [item for item in staged if item.verdict is Verdict.REMOVE]
    removed: tuple[Garbage, ...] = collect_garbage(folder, old[:files], run)
    gone = [file for ended in over for file in ended.files]
    return Swept(
        snapshots=len(over),
        files=len(gone) + len(removed),
        bytes=sum(file.bytes for file in gone) + sum(item.size for item in removed),
        waiting=len(state.ended) - position - len(over),
    )


def _over(
    store: ObjectStore, state: FolderState, position: int, count: int, horizon: int
) -> Iterator[TombstoneRecord]:
    """Ended versions from a position on, up to the first whose readers' grace has not passed."""
    is_past: dict[int, bool] = {}
    for ended in islice(state.ended, position, position + count):
        if ended.seq not in is_past:
            is_past[ended.seq] = ended_at(store, ended.seq, ended.deleted_at) < horizon
        if not is_past[ended.seq]:
            return
        yield state.records.tombstone(ended)


def _within(files: int, versions: Iterator[TombstoneRecord]) -> Iterator[TombstoneRecord]:
    """The first version, and those after it until the limit of files."""
    total = 0
    for version in versions:
        if total and total + len(version.files) > files:
            return
        total += len(version.files)
        yield version


class _Position(ApiModel):
    versions: Count
    """Their number."""
    seq: Count
    """Of the entry that ended the last of them."""
    deleted_at: Nanos
    """When that was, as recorded."""


def _position(store: ObjectStore, state: FolderState) -> int:
    """Number of ended versions known to have no files; 0 if the hint is of another log."""
    try:
        position = parse_hint(get_bounded(store, layout.SWEPT, HINT), layout.SWEPT, _Position)
    except ObjectNotFound:
        return 0
    except (ManifestCorrupt, ObjectTooLarge) as error:
        _log.warning("ignoring %s: %s", layout.SWEPT, error.found)
        return 0
    if not 0 < position.versions <= len(state.ended):
        return 0
    last = state.ended[position.versions - 1]
    return (
        position.versions
        if (last.seq, last.deleted_at) == (position.seq, position.deleted_at)
        else 0
    )


def _remember(store: ObjectStore, state: FolderState, count: int) -> None:
    last = state.ended[count - 1]
    position = _Position(versions=count, seq=last.seq, deleted_at=last.deleted_at)
    try:
        store.put(layout.SWEPT, position.dump_json().encode() + b"\n")
    except STORE_FAILURES as error:
        _log.warning("the next run removes what is gone once more: %s", error.message)
