"""Removal of an output folder: everything that is Snaploom's in it, and nothing else (rule P23).

Nobody waits for readers here: who asks for it deletes the resource. It is safe all the same:

- first the folder is marked as being removed (`metadata/removal.json`), so that no run begins
  in it, and so that a removal that died is known for what it is when it is done again;
- then one entry of the log ends every live snapshot and another revokes every run whose files are
  found. A run that is found by neither learns of it when it commits: the log adds nothing to an
  entry that is gone (`ManifestLog.commit`);
- files go one by one, by names that only Snaploom gives (rule P10); entries of the log go after
  the data, the oldest first, so that a reader that still finds the entry it knew finds all that
  followed it too; the marker goes after the log, and the notice last of all.

- the notice is looked at again before every deletion: a removal that wakes up when another one has
  ended, and the folder was begun anew, stops.

Other files stay and are reported. A process that is cut off from everything but the store may still
put files into a folder that is gone; it cannot publish them. It takes away those of data again, and
may leave a schema, which is nobody's and makes the folder look like another's.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain

from snaploom import errors
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectInfo, ObjectStore
from snaploom.output import documents, layout
from snaploom.output.entries import Revoke, Tombstone
from snaploom.output.folder import CrashPoint, Folder, FolderOwner, Run, open_folder, owner_in
from snaploom.output.icebergtable import TABLE, VERSIONS
from snaploom.output.manifest import ManifestLog
from snaploom.output.state import FolderState, first_ended, tombstone_of

REMOVED = "REMOVED"
"""Rule in the tombstones of snapshots that ended because their output was deleted."""

_DOCUMENT = re.compile(
    r"metadata/((schema|datamodel|listing)/[0-9a-f]{64}|(schema|datamodel)/merged)\.json"
)
_TABLE = re.compile(
    rf"commits/[0-9a-f]{{64}}\.json|{layout.DELTA_LOG}[^/]+"
    rf"|{VERSIONS}((v\d+|\d{{5,}}-[0-9a-f-]{{36}})\.metadata\.json|version-hint\.text|[^/]+\.avro)"
)


@dataclass(frozen=True)
class Removal:
    """Result of a removal, without the part that an earlier removal had done."""

    files: int = 0
    bytes: int = 0
    left: tuple[str, ...] = ()
    """Keys of objects that Snaploom did not write."""


def remove_folder(store: ObjectStore, owner: FolderOwner, run: Run) -> Removal:
    """Remove all that Snaploom wrote into the folder of an output; resumes an earlier removal.

    Raises:
        FolderNotOurs: it is another output's, or has no marker and yet data that may be ours.
        FolderRemoved: another removal ended meanwhile; what is there now is not touched.
        FormatTooNew: a newer Snaploom made it.
        ManifestCorrupt: its log cannot be read, and nothing was removed.
    """
    notice = _notice(store, owner)
    is_begun = notice is not None
    if notice is None:
        try:
            folder = open_folder(store)
        except errors.FolderNotOurs:
            if any(chain(_data(store), _entries(store))):
                raise
            # Nobody ever published here, or a removal got as far as this; others' files stay.
            return Removal(left=_left(store))
        notice = _begin(folder, owner, run)
    removing = _Removing(store, run, notice)
    removing.end_all(is_begun)
    removing.delete(_data(store))
    removing.delete(_entries(store))
    # A run may have put files here until the log was gone.
    removing.delete(_data(store))
    places = (VERSIONS, layout.DELTA_LOG, layout.COMMITS)
    listed = [info for place in places for info in store.list(place)]
    removing.delete([info for info in listed if _TABLE.fullmatch(info.key)])
    removing.delete(_record(store))
    store.prune(layout.DATA)
    left = _left(store)
    last = store.head(layout.REMOVAL)
    removing.delete(() if last is None else (last,))
    store.prune("metadata/")
    store.prune(TABLE)
    store.prune(layout.COMMITS)
    store.prune(TEMPORARY_PREFIX)
    return Removal(removing.files, removing.size, left)


def _notice(store: ObjectStore, owner: FolderOwner) -> bytes | None:
    try:
        notice = documents.get_bounded(store, layout.REMOVAL, documents.HINT)
    except errors.ObjectNotFound:
        return None
    name = f"{store.uri}{layout.REMOVAL}"
    document = documents.parse_versioned(notice, name, documents.HINT)
    of = [document.get("output"), document.get("namespace", ""), document.get("uid", "")]
    texts = [text for text in of if isinstance(text, str)]
    if len(texts) != len(of):
        raise documents.corrupt(name, "no name of an output")
    _refuse_other(store, FolderOwner(*texts), owner)
    return notice


def _begin(folder: Folder, owner: FolderOwner, run: Run) -> bytes:
    """Put the notice, unless another removal did; returns the one that is there."""
    store = folder.store
    identity = folder.log.read().identity
    if identity is not None:
        _refuse_other(store, owner_in(identity), owner)
    first = _first_entry(store)
    document = {"format": documents.MANIFEST_FORMAT, **asdict(owner), "runId": run.run_id}
    notice = json.dumps(document).encode() + b"\n"
    try:
        store.put_if_absent(layout.REMOVAL, notice)
    except errors.ObjectAlreadyExists:
        notice = _notice(store, owner) or notice
    if _first_entry(store) != first:
        # Removed and begun anew since we looked: it is the folder of a successor.
        store.delete([layout.REMOVAL] if _notice(store, owner) == notice else ())
        raise _finished(store)
    run.reached(CrashPoint.REMOVAL_BEGUN)
    return notice


def _first_entry(store: ObjectStore) -> bytes:
    """The first entry of the log, which distinguishes a folder from a later one in its place."""
    try:
        return documents.get_bounded(store, layout.manifest_key(1), documents.ENTRY)
    except errors.ObjectNotFound:
        return b""


def _refuse_other(store: ObjectStore, found: FolderOwner, owner: FolderOwner) -> None:
    if found.is_another(owner):
        raise errors.FolderNotOurs(
            f"{store.uri} is the folder of another output and stays",
            found=str(found),
            expected=str(owner),
            hint="delete that one to remove the folder",
        )


def _finished(store: ObjectStore) -> errors.FolderRemoved:
    return errors.FolderRemoved(
        f"{store.uri} was removed by another run",
        found="no notice of this removal any more",
        hint="nothing is left to do; what may be there now is another output's",
    )


@dataclass
class _Removing:
    """A removal at work.

    Nothing begins in a folder while its notice is there, so that whatever was listed before the
    notice was seen again is of the folder that is to go.
    """

    store: ObjectStore
    run: Run
    notice: bytes
    files: int = 0
    size: int = 0

    def end_all(self, is_begun: bool) -> None:
        """End every live snapshot and revoke every run that left files, unless done before."""
        log = ManifestLog(self.store)
        try:
            if log.read().settings is None:
                return
            while log.commit(self._tombstone).versions:
                continue
            writers = (layout.run_of(info.key) for info in _data(self.store))
            run_ids = {run_id for run_id in writers if run_id is not None}
            log.commit(lambda state: self._revocation(state, run_ids))
        except (errors.ManifestCorrupt, errors.FolderRemoved):
            self._refuse_finished()
            if is_begun:  # a part of the log is gone, so that this was done before
                return
            raise
        self.run.reached(CrashPoint.AFTER_REVOCATION)

    def delete(self, infos: Iterable[ObjectInfo]) -> None:
        for info in list(infos):
            self._refuse_finished()
            self.store.delete([info.key])
            self.files += 1
            self.size += info.size
            self.run.reached(CrashPoint.DURING_DELETION)

    def _refuse_finished(self) -> None:
        """Stop if another removal ended: a folder that is begun anew reuses names of entries."""
        try:
            found = documents.get_bounded(self.store, layout.REMOVAL, documents.HINT)
        except errors.ObjectNotFound:
            found = b""
        if found != self.notice:
            raise _finished(self.store)

    def _tombstone(self, state: FolderState) -> Tombstone | None:
        self._refuse_finished()
        if not state.live:
            return None
        head = self.run.head(state)
        ended = (
            tombstone_of(record, seq=head["seq"], rule=REMOVED, deleted_at=head["written_at"])
            for record in state.snapshots
        )
        return Tombstone(**head, snapshots=first_ended(ended))

    def _revocation(self, state: FolderState, run_ids: set[str]) -> Revoke | None:
        self._refuse_finished()
        alive = sorted(run_ids - state.revoked)
        if not alive:
            return None
        return Revoke(**self.run.head(state), run_ids=tuple(alive))


def _data(store: ObjectStore) -> Iterator[ObjectInfo]:
    return (info for info in store.list(layout.DATA) if layout.run_of(info.key) is not None)


def _entries(store: ObjectStore) -> list[ObjectInfo]:
    listed = [i for i in store.list(layout.MANIFEST) if layout.sequence_of(i.key) is not None]
    return sorted(listed, key=lambda info: info.key)


def _record(store: ObjectStore) -> list[ObjectInfo]:
    listed = list(store.list("metadata/"))
    documents = [info for info in listed if _DOCUMENT.fullmatch(info.key)]
    checkpoints = [
        info
        for info in listed
        if info.key.startswith(layout.CHECKPOINTS) and layout.sequence_of(info.key) is not None
    ]
    last = [
        store.head(key)
        for key in (layout.LATEST, layout.CLAIM, layout.SWEPT, layout.RUNS, layout.MARKER)
    ]
    unfinished = list(store.list(TEMPORARY_PREFIX))
    known = (info for info in last if info is not None)
    return [*documents, *checkpoints, *unfinished, *known]


def _left(store: ObjectStore) -> tuple[str, ...]:
    return tuple(sorted(info.key for info in store.list("") if info.key != layout.REMOVAL))
