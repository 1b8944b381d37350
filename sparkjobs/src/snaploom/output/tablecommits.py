"""Publication in a table: its own commit first, the entry of our log after it.

Readers of the table know nothing of our log, so that its commit is the publication. The content of
an entry is put beside the log before (`commits/<hash>.json`); the table's snapshot names it. From
that the entry is written: by the run itself, or, when it died in between, by the next run
(`catch_up`). Entries follow in the order of the table's history, so that the first commit found in
the log, from the newest back, shows that all older ones are there too.

A run is revoked in the table before it is in the log: a run that committed to the table before it
was revoked there is published, and one that did not never will be. So no entry can be due for a
run that the log has revoked.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from snaploom.errors import PublicationError, RunRevoked, SnaploomError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat
from snaploom.output import icebergtable, layout, manifest, tablehistory
from snaploom.output.documents import corrupt, rebased
from snaploom.output.entries import (
    Entry,
    FolderSettings,
    Publish,
    Replace,
    SnapshotRecord,
    Tombstone,
)
from snaploom.output.history import with_partition
from snaploom.output.outputtables import OutputTable, unreachable
from snaploom.output.state import FolderState, apply

_log = logging.getLogger(__name__)

_NO_COLUMNS = '{"type":"struct","fields":[]}'


def has_table(settings: FolderSettings | None) -> bool:
    """Whether a folder's snapshots are in a table of Iceberg or Delta as well."""
    return settings is not None and DataFormat(settings.data_format).is_table


@dataclass(frozen=True)
class TableCommits:
    """The table of one output, beside its log."""

    store: ObjectStore
    log: manifest.ManifestLog
    table: OutputTable | None
    """None where it is in a catalog, which nothing at hand leads to."""
    reached: Callable[[], None] = lambda: None
    """Called when the table's commit is there and the log does not know it; for tests."""

    def begin(self, settings: FolderSettings) -> None:
        """Make a missing table before any run can be revoked; `PublicationError` if impossible.

        A table that does not have what the log published last is no table to go on with.
        """
        table, state = self.reachable(), self.log.read()
        version = table.read()
        newest = max(state.versions.values(), key=lambda one: one.seq, default=None)
        if newest is not None:
            record = state.records.live(newest)
            commits = () if version is None else tablehistory.commits_of(self.store, version)
            if not any(
                tablehistory.meaning_of(self.store, one).publishes(record) for one in commits
            ):
                raise _lost(self.store.uri, settings, record, len(state.versions))
        elif version is None:
            table.begin(with_partition(_NO_COLUMNS, settings), settings.partition_field_name)

    def commit(self, build: Callable[[FolderState], Entry | None]) -> FolderState:
        """Publish an entry: in the table, then in the log.

        Arguments, result and errors are those of `ManifestLog.commit`; and

        Raises:
            HistoryIncompatible: columns contradict those that the table has.
            PublicationError: there is nothing that could write to the table.
        """
        return rebased(
            lambda: self._attempt(build), manifest.contended(f"the table of {self.store.uri}")
        )

    def _attempt(self, build: Callable[[FolderState], Entry | None]) -> FolderState | None:
        table = self.reachable()
        version = table.read()
        if version is None:
            raise corrupt(self.store.uri, "no table, though one was begun")
        state = self.catch_up()
        entry = build(state)
        if entry is None:
            return state
        if not isinstance(entry, tablehistory.CHANGES):
            raise AssertionError(f"not for the table: {entry.action}")
        if entry.run_id in version.revoked:
            raise RunRevoked(
                f"run {entry.run_id} was taken for dead and revoked by another run",
                found="a revocation in the table",
            )
        if not self._put(table, version, state, entry):
            return None
        self.reached()
        try:
            state = self.catch_up()
        except SnaploomError as error:
            raise manifest.CommitOutcomeUnknown(
                f"the table of {self.store.uri} has the commit, and the log does not: "
                f"{error.message}"
            ) from error
        is_there = isinstance(entry, Tombstone) or tablehistory.Meant(entry, "").is_version_of(
            state
        )
        return state if is_there else None

    def catch_up(self, *, writes: bool = True) -> FolderState:
        """The state with all commits that the table has and the log lacks, written by default.

        Raises:
            ManifestCorrupt: the meaning of a commit is missing.
        """
        state = self.log.read()
        version = None if self.table is None else self.table.read()
        if version is None:
            return state
        due: list[tablehistory.Meant] = []
        for commit in tablehistory.commits_of(self.store, version):
            meant = tablehistory.meaning_of(self.store, commit)
            if meant.is_version_of(state):
                break
            due.append(meant)
        for meant in reversed(due):
            if writes:
                state = self.log.commit(partial(self._entry, meant))
            elif (entry := meant.on_top_of(state)) is not None:
                state = apply(state, entry)
        return state

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        """Keep runs from publishing any more, before the log does; completes the log first."""
        self.reachable().revoke(run_ids, now)
        self.catch_up()

    def _put(
        self,
        table: OutputTable,
        version: icebergtable.TableVersion,
        state: FolderState,
        entry: Publish | Replace | Tombstone,
    ) -> bool:
        settings = state.settings
        assert settings is not None  # a folder is configured before anything is published
        commit = tablehistory.store_meaning(self.store, entry, table.before(version))
        begun, ended = tablehistory.versions_of(entry)
        schemas = [manifest.read_schema(self.store, one.schema_hash) for one in begun]
        change = icebergtable.TableChange(
            schema="".join(with_partition(schema, settings) for schema in schemas),
            field_name=settings.partition_field_name,
            added={layout.partition_value(one.partition): one.files for one in begun},
            ended=tuple(layout.partition_value(one.partition) for one in ended),
            summary={
                icebergtable.RUN_ID: entry.run_id,
                icebergtable.SNAPSHOT_TIME: " ".join(
                    format_instant(one.time) for one in begun or ended
                ),
                icebergtable.COMMIT: commit,
            },
        )
        return table.put(version, change, commit)

    def reachable(self) -> OutputTable:
        """The table; `PublicationError` where it is in a catalog that nothing leads to."""
        if self.table is None:
            raise unreachable(self.store)
        return self.table

    def _entry(self, meant: tablehistory.Meant, state: FolderState) -> Entry | None:
        entry = meant.on_top_of(state)
        if isinstance(entry, Publish | Replace):
            # They are there, unless `metadata/` was lost.
            manifest.store_schema(self.store, meant.schema)
            manifest.store_model(self.store, entry.model)
        if entry is not None:
            _log.debug("entry %d follows the table", entry.seq)
        return entry


def _lost(uri: str, settings: FolderSettings, record: SnapshotRecord, count: int) -> SnaploomError:
    is_delta = settings.data_format == DataFormat.DELTA
    log = layout.DELTA_LOG if is_delta else icebergtable.VERSIONS
    restored = f"register the newest file of {log}" if settings.table else f"restore {log}"
    return PublicationError(
        f"the table {settings.table or uri} has lost what was published in it",
        found=f"no commit of snapshot {format_instant(record.time)}",
        expected=f"the {count} snapshots of the manifest",
        hint=f"{restored} of the folder, or of a backup, or publish to a new folder",
    )
