"""Output folders: whose they are, who writes, and whether they are empty, ours or another's."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import TypedDict

from snaploom import errors
from snaploom.confidential import visible
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectStore, self_test
from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.output import entries, layout
from snaploom.output.documents import HINT, MANIFEST_FORMAT, get_bounded, parse_versioned
from snaploom.output.history import can_move, changed_settings, fixed_by, settled
from snaploom.output.icebergtable import TableLibrary
from snaploom.output.layout import is_run_id
from snaploom.output.manifest import ManifestLog
from snaploom.output.outputtables import OutputTable, output_table
from snaploom.output.state import EMPTY, FolderState
from snaploom.output.tablecommits import TableCommits, has_table

# Identity and clock of a run that writes, and the points at which tests may kill it.


class CrashPoint(StrEnum):
    """Moments at which a process may die without harm."""

    AFTER_MARKER = "AFTER_MARKER"
    """The folder is marked, and not configured yet."""
    BEFORE_STAGING = "BEFORE_STAGING"
    """Nothing is written yet."""
    AFTER_STAGING = "AFTER_STAGING"
    """All data is staged."""
    DURING_PROMOTION = "DURING_PROMOTION"
    """A file has its final name; reached once a file."""
    AFTER_PROMOTION = "AFTER_PROMOTION"
    """Every file has its final name, and no entry lists it."""
    AFTER_TABLE_COMMIT = "AFTER_TABLE_COMMIT"
    """The table has the commit, where there is a table, and no entry lists it."""
    AFTER_COMMIT = "AFTER_COMMIT"
    """The entry is written; staging is not cleaned."""
    AFTER_REVOCATION = "AFTER_REVOCATION"
    """Runs are revoked; none of their files is touched."""
    REMOVAL_BEGUN = "REMOVAL_BEGUN"
    """The folder is marked as being removed; nothing is removed yet."""
    DURING_DELETION = "DURING_DELETION"
    """A dead file is removed; reached once a file."""


class EntryHead(TypedDict):
    """Fields that every entry of the log has."""

    seq: int
    run_id: str
    written_at: EpochNanos
    tool_version: str


@dataclass(frozen=True)
class Run:
    """One run of a job, as storage sees it."""

    run_id: str
    """From `layout.new_run_id`: part of every file name and entry."""
    tool_version: str
    clock: Callable[[], EpochNanos]
    """The time now; for reports and the age of leftovers; decides no order (rule P18)."""
    reached: Callable[[CrashPoint], None] = lambda point: None
    """Called at each point; does nothing except in tests."""

    def __post_init__(self) -> None:
        if not is_run_id(self.run_id):
            raise ValueError(f"not a run id: {self.run_id!r}")

    def head(self, state: FolderState) -> EntryHead:
        """Begin an entry of the run that follows a state."""
        return EntryHead(
            seq=state.next_seq,
            run_id=self.run_id,
            written_at=self.clock(),
            tool_version=self.tool_version,
        )


# Ownership of an output folder: one OutputDataset, by namespace and UID as well as its name.


@dataclass(frozen=True)
class FolderOwner:
    """An OutputDataset, as far as it is known."""

    output: str
    namespace: str = ""
    """Empty where there is no cluster, as `uid` is."""
    uid: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.output}" if self.namespace else self.output
        return f"OutputDataset/{name}" + (f" with UID {self.uid}" if self.uid else "")

    def is_elsewhere(self, other: FolderOwner) -> bool:
        """Whether another owner is known to be in another namespace."""
        return _differ(self.namespace, other.namespace)

    def is_another(self, other: FolderOwner) -> bool:
        """Whether another owner is known to be another resource."""
        return (
            self.output != other.output or self.is_elsewhere(other) or _differ(self.uid, other.uid)
        )


def owner_in(identity: entries.FolderIdentity) -> FolderOwner:
    """Return the owner of a folder."""
    return FolderOwner(identity.output, identity.namespace, identity.uid)


def refuse_others(
    uri: str, found: entries.FolderIdentity, asked: entries.FolderIdentity, *, adopt_folder: bool
) -> None:
    """Raise `FolderNotOurs` for the folder of an output of the same name by another resource."""
    theirs, ours = owner_in(found), owner_in(asked)
    if theirs.is_elsewhere(ours):
        hint = "publish to another outputFolder.folderUri; nothing in it was touched"
    elif _differ(theirs.uid, ours.uid) and not adopt_folder:
        hint = (
            "publish to another outputFolder.folderUri; or, if that one is gone, because it was "
            "deleted and created anew or moved to this cluster, set run.adoptFolder for one run"
        )
    else:
        return
    raise errors.FolderNotOurs(
        f"{uri} is the folder of another OutputDataset of this name",
        found=str(theirs),
        expected=str(ours),
        hint=hint,
    )


def adopted(
    found: entries.FolderIdentity | None, asked: entries.FolderIdentity
) -> entries.FolderIdentity:
    """The owner to record: the requested one, else the recorded one."""
    if found is None:
        return asked
    return asked.model_copy(
        update={
            "namespace": asked.namespace or found.namespace,
            "uid": asked.uid or found.uid,
        }
    )


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other


# Output folders: is it empty, ours, or somebody else's, and do its fixed settings agree?

NAMES_SHOWN = 5
"""Names of foreign files in a message: enough to recognise the folder."""


@dataclass(frozen=True)
class Folder:
    """A folder that carries our marker."""

    store: ObjectStore
    log: ManifestLog
    library: TableLibrary | None = None
    """Makes versions of the folder's Iceberg table; None where nothing is published there."""

    def read(self, *, writes: bool = True) -> FolderState:
        """The committed state; entries that a table has and the log lacks are written, if asked."""
        state = self.log.read()
        return self._table().catch_up(writes=writes) if has_table(state.settings) else state

    def begin_table(self, settings: entries.FolderSettings) -> None:
        """Make the folder's table, if it is to have one and does not."""
        if has_table(settings):
            self._table().begin(settings)

    def commit(
        self, build: Callable[[FolderState], entries.Entry | None], run: Run | None = None
    ) -> FolderState:
        """Commit an entry that changes what readers see; in the table first, where there is one.

        Arguments, result and errors are those of `ManifestLog.commit` and `TableCommits.commit`.
        """
        if self._has_table:
            return self._table(run).commit(build)
        return self.log.commit(build)

    def revoke(
        self,
        run_ids: Iterable[str],
        run: Run,
        unless: Callable[[FolderState], bool] = lambda state: False,
    ) -> FolderState:
        """Revoke runs in table and log, unless a state exempts them; returns the new state."""
        wanted = frozenset(run_ids)

        def revocation(state: FolderState) -> entries.Revoke | None:
            alive = sorted(wanted - state.revoked)
            if not alive or unless(state):
                return None
            return entries.Revoke(**run.head(state), run_ids=tuple(alive))

        if wanted and self._has_table and not unless(self.read()):
            self._table().revoke(wanted, run.clock())
        return self.log.commit(revocation)

    def forget(
        self, ended: Collection[entries.TombstoneRecord], files: Collection[str], run: Run
    ) -> None:
        """Let the folder's table, if any, forget versions before files go, by key.

        Raises:
            SnapshotsHeld: the table shows one of these versions or files elsewhere.
        """
        if files and self._has_table:
            self._table().reachable().forget(ended, files, run.clock())

    def refuse_held(
        self, ended: Collection[entries.TombstoneRecord], files: Collection[str]
    ) -> None:
        """Raise what `forget` would; changes nothing."""
        if files and self._has_table:
            self._table().reachable().refuse_held(ended, files)

    @cached_property
    def _has_table(self) -> bool:
        return has_table(self.log.read().settings)

    @cached_property
    def _output_table(self) -> OutputTable | None:
        return output_table(self.store, self.log.read().settings, self.library)

    def _table(self, run: Run | None = None) -> TableCommits:
        reached = run.reached if run is not None else lambda point: None
        return TableCommits(
            self.store,
            self.log,
            self._output_table,
            lambda: reached(CrashPoint.AFTER_TABLE_COMMIT),
        )


def open_folder(store: ObjectStore, library: TableLibrary | None = None) -> Folder:
    """Open an existing folder for reading or collecting garbage; writes nothing.

    Raises:
        FolderNotOurs: it has no marker.
        ManifestCorrupt: it has data, and its manifest is lost.
        FormatTooNew: a newer Snaploom made it.
    """
    if not _is_marked(store):
        names = _foreign_names(store)
        raise errors.FolderNotOurs(
            f"{store.uri} is not an output folder of Snaploom",
            found=_listing(names) if names else "an empty or absent folder",
            expected=f"a folder with {layout.MARKER}",
            hint="check the folder's URI; publish into it first if it is to be new",
        )
    folder = Folder(store, ManifestLog(store), library)
    if store.head(layout.manifest_key(1)) is None:
        _refuse_lost_manifest(store)
    return folder


def is_unused(store: ObjectStore) -> bool:
    """Whether a folder is absent or empty, so that nothing was ever published into it."""
    return not _is_marked(store) and not _foreign_names(store)


def inspect_folder(
    store: ObjectStore,
    settings: entries.FolderSettings,
    identity: entries.FolderIdentity,
    *,
    open_names: AbstractSet[str] = frozenset(),
    accept_root_change: bool = False,
    adopt_folder: bool = False,
) -> FolderState:
    """Return the state of a folder that a run means to use; writes nothing (rule W5).

    Raises:
        FolderNotOurs: it is neither empty nor ours, or another output's of this name.
        FolderRemoved: it is being removed.
        ManifestCorrupt: it has data, and its manifest is lost.
        ImmutableSettingChanged: a fixed setting differs; every difference is listed.
        FormatTooNew: a newer Snaploom made it.
    """
    if store.head(layout.REMOVAL) is not None:
        raise _removed(store, layout.REMOVAL)
    if not _is_marked(store):
        names = _foreign_names(store)
        if not names:
            return EMPTY
        # Another run may have marked it between the two looks.
        if not _is_marked(store):
            raise errors.FolderNotOurs(
                f"{store.uri} is not empty, and Snaploom did not make it",
                found=_listing(names),
                expected=f"an empty folder, or one with {layout.MARKER}",
            )
    state = ManifestLog(store).read()
    if not state.seq:
        _refuse_lost_manifest(store)
    asked = settled(settings, state.settings, open_names)
    _refuse_changes(store, state, asked, identity, accept_root_change, adopt_folder)
    return state


def prepare_folder(
    store: ObjectStore,
    settings: entries.FolderSettings,
    identity: entries.FolderIdentity,
    run: Run,
    *,
    open_names: AbstractSet[str] = frozenset(),
    accept_root_change: bool = False,
    adopt_folder: bool = False,
    reader_grace: TimeOffset | None = None,
    is_repair: bool = False,
    library: TableLibrary | None = None,
) -> Folder:
    """A folder to publish into: proven safe, marked, and configured; begun when it is empty.

    Args:
        store: the folder.
        settings: fixed settings.
        identity: owner of the folder.
        run: the run that prepares it.
        open_names: settings that are as the folder has them, if it was begun.
        accept_root_change: whether another root is allowed.
        adopt_folder: whether another resource of the same name and namespace may have it.
        reader_grace: time for which readers may use a pinned entry; None leaves it as it is.
        is_repair: whether a folder that is not empty may be begun: somebody has looked at what is
            in it (`output.repair`).
        library: makes versions of the folder's table, where it has one.

    Raises:
        StoreNotSafe: its store fails the self-test.
    """
    if not is_repair:
        inspect_folder(
            store,
            settings,
            identity,
            open_names=open_names,
            accept_root_change=accept_root_change,
            adopt_folder=adopt_folder,
        )
    self_test(store)
    marker = json.dumps({"format": MANIFEST_FORMAT, "madeBy": "snaploom"}).encode() + b"\n"
    try:
        store.put_if_absent(layout.MARKER, marker)
    except errors.ObjectAlreadyExists:
        _is_marked(store)
    run.reached(CrashPoint.AFTER_MARKER)
    log = ManifestLog(store)

    def configure(state: FolderState) -> entries.Configure | None:
        asked = settled(settings, state.settings, open_names)
        _refuse_changes(store, state, asked, identity, accept_root_change, adopt_folder)
        known = adopted(state.identity, identity)
        grace = reader_grace or state.reader_grace
        if (state.settings, state.identity, state.reader_grace) == (asked, known, grace):
            return None
        if not state.seq and store.head(layout.MARKER) is None:
            raise _removed(store, f"no {layout.MARKER} any more")
        return entries.Configure(
            **run.head(state), settings=asked, identity=known, reader_grace=grace
        )

    log.commit(configure)
    folder = Folder(store, log, library)
    folder.begin_table(settings)
    return folder


def _is_marked(store: ObjectStore) -> bool:
    try:
        marker = get_bounded(store, layout.MARKER, HINT)
    except errors.ObjectNotFound:
        return False
    parse_versioned(marker, f"{store.uri}{layout.MARKER}", HINT)
    return True


def _removed(store: ObjectStore, found: str) -> errors.FolderRemoved:
    return errors.FolderRemoved(f"{store.uri} is being removed", found=found)


def _refuse_lost_manifest(store: ObjectStore) -> None:
    names = (info.key for info in store.list(layout.DATA))
    found = tuple(islice((n for n in names if layout.run_of(n) is not None), NAMES_SHOWN + 1))
    # Another run may have begun the folder, and promoted files, since no entry was seen.
    if found and not ManifestLog(store).read().seq:
        raise errors.ManifestCorrupt(
            f"the manifest of {store.uri} is lost: it has data, and no entry that names it",
            found=_listing(found),
            expected=f"entries in {layout.MANIFEST}",
        )


def _foreign_names(store: ObjectStore) -> tuple[str, ...]:
    keys = (info.key for info in store.list(""))
    foreign = (key for key in keys if not key.startswith(TEMPORARY_PREFIX))
    return tuple(islice(foreign, NAMES_SHOWN + 1))


def _listing(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(visible, names[:NAMES_SHOWN]))
    return f"{shown}, …" if len(names) > NAMES_SHOWN else shown


def _refuse_changes(
    store: ObjectStore,
    state: FolderState,
    settings: entries.FolderSettings,
    identity: entries.FolderIdentity,
    accept_root_change: bool,
    adopt_folder: bool,
) -> None:
    if state.settings is None or state.identity is None:
        return
    refuse_others(store.uri, state.identity, identity, adopt_folder=adopt_folder)
    fixed = fixed_by(state.settings, state.identity)
    asked = fixed_by(settings, identity)
    changed = changed_settings(fixed, asked, accept_root_change=accept_root_change)
    if changed:
        raise errors.ImmutableSettingChanged(
            f"{store.uri} was begun with other settings, which are fixed for ever",
            found=", ".join(f"{name}: {asked[name]}" for name in changed),
            expected=", ".join(f"{name}: {fixed[name]}" for name in changed),
            hint="move the table to the catalog by 'snaploom migrate', and run again"
            if all(can_move(name, fixed) for name in changed)
            else "",
        )
