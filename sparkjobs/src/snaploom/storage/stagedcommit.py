"""Steps of every publication: stage, promote file by file, commit, and clean up.

Until the entry is written nothing is published, and everything written so far has the run's id in
its name. A failure before that removes what was written, except when the commit may have happened:
then the log is read first, and while it cannot be read nothing is removed (rule P4). A killed
process leaves files for `snaploom gc`.

The writer gets a URI, writes files below it by any means, and returns its counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from snaploom.errors import (
    FolderNotWritable,
    Interrupted,
    ObjectNotFound,
    PublicationError,
    RunRevoked,
    SnaploomError,
    StorageError,
)
from snaploom.models.times import EpochNanos
from snaploom.storage import layout
from snaploom.storage.entries import Entry, FileRecord
from snaploom.storage.folder import Folder
from snaploom.storage.gc import Garbage, GarbageKind, collect_garbage, find_garbage
from snaploom.storage.manifest import CommitOutcomeUnknown
from snaploom.storage.objectstore import STORE_FAILURES, ObjectInfo, ObjectStore, refuse_links
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import CrashPoint, Run

LEFTOVER_GRACE = 3600 * 1_000_000_000
"""Nanoseconds after which files of an unknown run in our partition are taken for those of a dead
one: the default of `readerGrace` (rule P22). Younger ones may be of a run that races with us."""

_log = logging.getLogger(__name__)
Counted = TypeVar("Counted")


@dataclass
class Work:
    """One version of a snapshot on its way into a folder, and its cleanup on failure."""

    folder: Folder
    """From `prepare_folder` or `open_folder`."""
    run: Run
    """The run that publishes."""
    time: EpochNanos
    """Snapshot time."""
    partition: str
    """Folder below `data/`."""
    attempt: str = field(default_factory=layout.new_attempt)
    """Distinguishes the files from those of any other work of the same run."""
    promoted: list[str] = field(default_factory=list)
    """Files that have, or are just getting, their final names."""
    is_committing: bool = False
    """Whether an entry may have been written."""
    remarks: tuple[str, ...] = ()
    """Returned by the last revalidation of the entry."""

    @property
    def store(self) -> ObjectStore:
        """The folder's store."""
        return self.folder.store

    @property
    def staging(self) -> str:
        """Return the folder that the writer writes to."""
        return layout.staging_prefix(self.run.run_id, self.attempt)

    @contextmanager
    def cleaning_up(self) -> Iterator[None]:
        """Remove the work's files if the block fails, unless they are or may be published."""
        try:
            yield
        except BaseException as failure:
            self._abandon(failure)
            raise
        self.clean_staging()

    def stage(self, write: Callable[[str], Counted]) -> tuple[Counted, list[ObjectInfo]]:
        """Call the writer as `publish` does; returns its counts and its files of data.

        Raises:
            NotAPlainFile: a link is where it would write (local disks only).
            PublicationError: it left files in subfolders.
            Exception: any error of `write`.
        """
        self.run.reached(CrashPoint.BEFORE_STAGING)
        refuse_links(self.store, [self.staging.removesuffix("/")])
        counted = write(f"{self.store.uri}{self.staging}")
        staged = self._staged_files()
        self.run.reached(CrashPoint.AFTER_STAGING)
        return counted, staged

    def clear_partition(self, grace: int) -> tuple[Garbage, ...]:
        """Remove dead runs' files after `grace` nanoseconds; returns those too young or foreign."""
        prefix = layout.partition_prefix(self.partition)
        state = self.folder.log.read()
        found = find_garbage(self.store, state, self.run.clock(), grace, prefix)
        # Tombstoned files are left to gc, which knows how long readers may hold on to them.
        uncommitted = [item for item in found if item.kind is GarbageKind.UNCOMMITTED]
        removed = {item.key for item in collect_garbage(self.folder, uncommitted, self.run)}
        return tuple(item for item in found if item.key not in removed)

    def promote(self, staged: list[ObjectInfo]) -> tuple[FileRecord, ...]:
        """Give staged files their final names one by one; `RunRevoked` if they are gone."""
        files = []
        for number, info in enumerate(staged):
            key = layout.published_key(
                self.partition, self.run.run_id, self.attempt, number, info.key
            )
            self.promoted.append(key)  # before the move: an interrupted one is removed as well
            try:
                self.store.move_if_absent(info.key, key)
            except ObjectNotFound:
                refuse_revoked(self.folder.log.read(), self.run)
                raise
            files.append(FileRecord(path=key, bytes=info.size))
            self.run.reached(CrashPoint.DURING_PROMOTION)
        self.run.reached(CrashPoint.AFTER_PROMOTION)
        return tuple(files)

    def commit(self, build: Callable[[FolderState], Entry | None]) -> FolderState:
        """Commit the entry; arguments, result and errors are those of `ManifestLog.commit`."""
        self.is_committing = True
        state = self.folder.commit(build, self.run)
        self.run.reached(CrashPoint.AFTER_COMMIT)
        return state

    def is_committed(self, state: FolderState) -> bool:
        """Whether an entry up to this state is ours, also if what it published has ended since."""
        record = state.live.get(self.time)
        if self.promoted:
            # Names are never used twice, so that one of them stands for all.
            ended = (t for t in state.ended if t.time == self.time)
            versions = (record, *map(state.records.tombstone, ended))
            name = self.promoted[0]
            return any(version is not None and version.has(name) for version in versions)
        return record is not None and record.run_id == self.run.run_id and not record.files

    def discard(self) -> None:
        """Remove our own files: promoted ones by name, staging by its prefix."""
        try:
            self.store.delete(self.promoted)
        except STORE_FAILURES as error:
            self._leave(error)
        self.clean_staging()

    def clean_staging(self) -> None:
        """Remove the rest of staging; the outcome stands, so that a failure is a warning."""
        remove_staged(self.store, self.run, self.staging)

    def _abandon(self, failure: BaseException) -> None:
        try:
            if self.is_committing and not _is_definite(failure) and not self._settle():
                self.clean_staging()
            else:
                self.discard()
        except STORE_FAILURES as error:
            self._leave(error)

    def _leave(self, error: StorageError | FolderNotWritable) -> None:
        _warn_of_files(self.run, error)

    def _settle(self) -> bool:
        """Ensure that no entry of ours can land any more; whether our files are dead.

        The answer to a put may still be under way. Revoking ourselves takes the number that it
        wants, or finds our entry there.
        """
        revoked = self.folder.revoke((self.run.run_id,), self.run, unless=self.is_committed)
        return not self.is_committed(revoked)

    def _staged_files(self) -> list[ObjectInfo]:
        staged = []
        for info in self.store.list(self.staging):
            name = info.key.removeprefix(self.staging)
            if any(not layout.is_data_file(part) for part in name.split("/")):
                continue
            if "/" in name:
                raise PublicationError(
                    "the writer left a file in a subfolder of staging",
                    found=name,
                    expected="files directly below the folder it was given",
                    hint="remove the setting by which Spark makes folders of its own; nothing "
                    "was published",
                )
            staged.append(info)
        return sorted(staged, key=lambda info: info.key)


def remove_staged(store: ObjectStore, run: Run, prefix: str) -> None:
    """Remove everything below a staging prefix; a failure is a warning."""
    try:
        store.delete([info.key for info in store.list(prefix)])
        store.prune(prefix)
    except STORE_FAILURES as error:
        _warn_of_files(run, error)


def _warn_of_files(run: Run, error: StorageError | FolderNotWritable) -> None:
    _log.warning("run %s leaves files for snaploom gc: %s", run.run_id, error.message)


def refuse_revoked(state: FolderState, run: Run) -> None:
    """Raise `RunRevoked` for a run that may not commit any more."""
    if run.run_id in state.revoked:
        raise RunRevoked(
            f"run {run.run_id} was taken for dead and revoked by another run",
            found="a revocation in the manifest log",
            hint="run again; nothing was published by this run since, and nothing is lost",
        )


def _is_definite(failure: BaseException) -> bool:
    unknown = (CommitOutcomeUnknown, Interrupted)
    return isinstance(failure, SnaploomError) and not isinstance(failure, unknown)
