"""Removal of an output folder: everything that is Snaploom's in it, and nothing else (ruling D15).

Nobody waits for readers here: who asks for it deletes the resource. It is safe all the same:

- first the folder says that it is being removed (`metadata/removal.json`), so that no run begins
  in it, and so that a removal that died is known for what it is when it is done again;
- then one entry of the log ends every live snapshot and another revokes every run whose files are
  found. A run that is found by neither learns of it when it commits: the log adds nothing to an
  entry that is gone (`ManifestLog.commit`);
- files go one by one, by names that only Snaploom gives (ruling D28); entries of the log go after
  the data, the oldest first, so that whoever still finds the entry that he knew finds all that
  followed it too; the marker goes after the log, and the notice last of all.

What Snaploom did not write stays and is told. A process that is cut off from everything but the
store may still put files into a folder that is gone; it cannot publish them. It takes away those
of data again, and may leave a schema, which is nobody's and makes the folder look like another's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from snaploom.errors import (
    FolderNotOurs,
    FolderRemoved,
    ManifestCorrupt,
    ObjectAlreadyExists,
    ObjectNotFound,
)
from snaploom.storage import layout
from snaploom.storage.entries import (
    MANIFEST_FORMAT,
    Revoke,
    Tombstone,
    check_format,
    corrupt,
)
from snaploom.storage.folder import Folder, open_folder
from snaploom.storage.manifest import ManifestLog
from snaploom.storage.objectstore import TEMPORARY_PREFIX, ObjectInfo, ObjectStore
from snaploom.storage.run import CrashPoint, Run
from snaploom.storage.state import FolderState, tombstone_of

REMOVED = "REMOVED"
"""Rule in the tombstones of snapshots that ended because their output was deleted."""

_DOCUMENT = re.compile(r"metadata/(schema|datamodel)/[0-9a-f]{64}\.json")


@dataclass
class Removal:
    """What a removal did; a removal that was begun before has done its part already."""

    files: int = 0
    """Objects that were removed."""
    bytes: int = 0
    """Their size."""
    left: tuple[str, ...] = field(default=())
    """Keys of objects that Snaploom did not write."""


def remove_folder(store: ObjectStore, output: str, run: Run) -> Removal:
    """Remove all that Snaploom wrote into the folder of an output; again, if it was begun before.

    Args:
        store: the folder; one that is absent, empty or only others' is fine, and not touched.
        output: name of the OutputDataset that is deleted.
        run: who removes; its `reached` is called after every object, and may raise to stop.

    Raises:
        FolderNotOurs: it is another output's, or has no marker and yet data that may be ours.
        FormatTooNew: a newer Snaploom made it.
        ManifestCorrupt: its log cannot be read, and nothing was removed.
        FolderNotWritable: it refuses deletions; running again goes on.
    """
    removal = Removal()
    is_begun = _is_begun(store, output)
    if not is_begun:
        try:
            folder = open_folder(store)
        except FolderNotOurs:
            if any(chain(_data(store), _entries(store))):
                raise
            # Nobody ever published here, or a removal got as far as this; others' files stay.
            return Removal(left=_left(store))
        _begin(folder, output, run)
    _end_all(Folder(store, ManifestLog(store)), run, is_begun)
    _delete(store, _data(store), run, removal)
    _delete(store, _entries(store), run, removal)
    # A run may have put files here until the log was gone.
    _delete(store, _data(store), run, removal)
    _delete(store, _record(store), run, removal)
    store.prune(layout.DATA)
    notice = store.head(layout.REMOVAL)
    removal.left = _left(store)
    _delete(store, () if notice is None else (notice,), run, removal)
    store.prune("metadata/")
    store.prune(TEMPORARY_PREFIX)
    return removal


def _is_begun(store: ObjectStore, output: str) -> bool:
    try:
        notice = store.get(layout.REMOVAL)
    except ObjectNotFound:
        return False
    name = f"{store.uri}{layout.REMOVAL}"
    check_format(notice, name)
    of = json.loads(notice).get("output")
    if not isinstance(of, str):
        raise corrupt(name, "no name of an output")
    _refuse_other(store, of, output)
    return True


def _begin(folder: Folder, output: str, run: Run) -> None:
    identity = folder.log.read().identity
    if identity is not None:
        _refuse_other(folder.store, identity.output, output)
    document = {"format": MANIFEST_FORMAT, "output": output, "runId": run.run_id}
    try:
        folder.store.put_if_absent(layout.REMOVAL, json.dumps(document).encode() + b"\n")
    except ObjectAlreadyExists:
        _is_begun(folder.store, output)
    run.reached(CrashPoint.REMOVAL_BEGUN)


def _refuse_other(store: ObjectStore, found: str, output: str) -> None:
    if found != output:
        raise FolderNotOurs(
            f"{store.uri} is the folder of another output and stays",
            found=f"OutputDataset/{found}",
            expected=f"OutputDataset/{output}",
            hint="delete that one to remove the folder",
        )


def _end_all(folder: Folder, run: Run, is_begun: bool) -> None:
    """End every live snapshot, and revoke every run that left files."""
    try:
        if folder.log.read().settings is None:
            return
        folder.log.commit(lambda state: _tombstone(state, run))
        writers = (layout.run_of(info.key) for info in _data(folder.store))
        run_ids = {run_id for run_id in writers if run_id is not None}
        folder.log.commit(lambda state: _revocation(state, run, run_ids))
    except (ManifestCorrupt, FolderRemoved):
        if is_begun:  # a part of the log is gone, so that this was done before
            return
        raise
    run.reached(CrashPoint.AFTER_REVOCATION)


def _tombstone(state: FolderState, run: Run) -> Tombstone | None:
    if not state.live:
        return None
    seq, moment = state.next_seq, run.clock()
    return Tombstone(
        seq=seq,
        run_id=run.run_id,
        written_at=moment,
        tool_version=run.tool_version,
        snapshots=tuple(
            tombstone_of(record, seq=seq, rule=REMOVED, deleted_at=moment)
            for record in state.snapshots
        ),
    )


def _revocation(state: FolderState, run: Run, run_ids: set[str]) -> Revoke | None:
    alive = sorted(run_ids - state.revoked)
    if not alive:
        return None
    return Revoke(
        seq=state.next_seq,
        run_id=run.run_id,
        written_at=run.clock(),
        tool_version=run.tool_version,
        run_ids=tuple(alive),
    )


def _data(store: ObjectStore) -> Iterator[ObjectInfo]:
    """Files of data that only Snaploom can have written, staged ones included."""
    return (info for info in store.list(layout.DATA) if layout.run_of(info.key) is not None)


def _entries(store: ObjectStore) -> list[ObjectInfo]:
    """Entries of the log, the oldest first."""
    listed = [i for i in store.list(layout.MANIFEST) if layout.sequence_of(i.key) is not None]
    return sorted(listed, key=lambda info: info.key)


def _record(store: ObjectStore) -> list[ObjectInfo]:
    """What the folder has besides data and log, the marker last."""
    listed = list(store.list("metadata/"))
    documents = [info for info in listed if _is_document(info.key)]
    checkpoints = [
        info
        for info in listed
        if info.key.startswith(layout.CHECKPOINTS) and layout.sequence_of(info.key) is not None
    ]
    last = [store.head(key) for key in (layout.LATEST, layout.MARKER)]
    unfinished = list(store.list(TEMPORARY_PREFIX))
    known = (info for info in last if info is not None)
    return [*documents, *checkpoints, *unfinished, *known]


def _is_document(key: str) -> bool:
    return key == layout.MERGED_DATA_MODEL or _DOCUMENT.fullmatch(key) is not None


def _left(store: ObjectStore) -> tuple[str, ...]:
    return tuple(sorted(info.key for info in store.list("") if info.key != layout.REMOVAL))


def _delete(store: ObjectStore, infos: Iterable[ObjectInfo], run: Run, removal: Removal) -> None:
    for info in list(infos):
        store.delete([info.key])
        removal.files += 1
        removal.bytes += info.size
        run.reached(CrashPoint.DURING_DELETION)
