"""The table of an output, in its own folder or in a catalog: read, changed, and made to forget.

A table of a catalog is changed by the catalog's compare-and-swap. Each commit of ours, a revocation
too, is a snapshot of its branch `main` on top of the one it was made for. So a late commit of a
revoked run cannot land any more, and one of another writer, such as a compaction, is never lost:
the second one makes its change anew. The files remain the folder's: `gc.enabled` is false,
by which Iceberg refuses to remove files that readers of the manifest still need.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from snaploom.errors import PublicationError, SnaploomError
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos
from snaploom.models.outputdataset import DataFormat
from snaploom.output import icebergtable, tablehistory
from snaploom.output.deltatable import DeltaTable
from snaploom.output.documents import corrupt, rebased
from snaploom.output.entries import FolderSettings, TombstoneRecord
from snaploom.output.manifest import CommitOutcomeUnknown, contended

_HOUR = 3600 * 1_000_000_000
LISTS_MARGIN = _HOUR
"""Nanoseconds by which a list of files is older than the version that does without it: its
writer is long done, and clocks inside one store differ by far less."""
OTHERS_LISTS_MARGIN = 72 * _HOUR
"""The same in a table that others write to: what Iceberg gives them to commit what they wrote."""
OF_CATALOG: Mapping[str, str] = {
    "gc.enabled": "false",
    "write.metadata.delete-after-commit.enabled": "true",
}
"""Properties of a table of a catalog: only we remove data, and old versions go by themselves."""


class OutputTable(Protocol):
    """The table of one output."""

    def read(self) -> icebergtable.TableVersion | None:
        """The newest version; None before the first."""

    def begin(self, schema: str, field_name: str) -> None:
        """Make the table; the schema has only the partition column."""

    def before(self, version: icebergtable.TableVersion) -> str | None:
        """The last commit up to a version, where commits name the one before them."""

    def put(
        self, version: icebergtable.TableVersion, change: icebergtable.TableChange, commit: str
    ) -> bool:
        """Commit a change on top of a version, under a hash; False after a lost race."""

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        """Keep runs from committing to the table any more."""

    def forget(
        self, ended: Collection[TombstoneRecord], files: Collection[str], now: EpochNanos
    ) -> None:
        """Remove snapshots that show ended versions, before files go, by key.

        Raises:
            SnapshotsHeld: a version or a file is shown elsewhere, as by a tag.
        """

    def refuse_held(self, ended: Collection[TombstoneRecord], files: Collection[str]) -> None:
        """Raise what `forget` would; changes nothing."""


def output_table(
    store: ObjectStore, settings: FolderSettings | None, library: icebergtable.TableLibrary | None
) -> OutputTable | None:
    """The table of a folder; None where it is in a catalog, which nothing at hand leads to."""
    if settings is not None and settings.data_format == DataFormat.DELTA:
        return DeltaTable(store)
    if settings is None or settings.table is None:
        return FolderTable(store, library)
    return None if library is None else CatalogedTable(store, library.of_catalog(settings.table))


def unreachable(store: ObjectStore) -> PublicationError:
    """The error of a command that would have to write to a table, and cannot."""
    return PublicationError(
        f"{store.uri} is an Iceberg table, which this command does not write to",
        hint="nothing was changed; where it is in a catalog, name the output and its declarations, "
        "as in 'snaploom gc wide -f model.yaml'; a run that publishes removes what has ended, too",
    )


class FolderTable(icebergtable.IcebergTable):
    """The table in the output's folder, each version of which is one put-if-absent."""

    def __init__(self, store: ObjectStore, library: icebergtable.TableLibrary | None) -> None:
        """Open it; the library makes versions, and is None where nothing is to be published."""
        super().__init__(store)
        self.library = library

    def begin(self, schema: str, field_name: str) -> None:
        self.append(1, self._library().created(self.store.uri, schema, field_name))

    def before(self, version: icebergtable.TableVersion) -> str | None:
        """None: summaries of snapshots and pages have the history."""
        return None

    def put(
        self, version: icebergtable.TableVersion, change: icebergtable.TableChange, commit: str
    ) -> bool:
        library = self._library()
        icebergtable.refuse_moved(version, self.store.uri)
        icebergtable.refuse_foreign_places(self.store)
        _refuse_links(self.store, change)
        changed = library.changed(self.store.uri, version.number, change)
        return changed is not None and self.append(version.number + 1, changed)

    def forget(
        self, ended: Collection[TombstoneRecord], files: Collection[str], now: EpochNanos
    ) -> None:
        """As `OutputTable.forget`; others do not write to it."""
        is_changed = tablehistory.forget(self.store, ended, now // NANOS_PER_MILLISECOND)
        if is_changed and self.library is not None:
            tablehistory.remove_lists(self.store, self.library, LISTS_MARGIN)

    def refuse_held(self, ended: Collection[TombstoneRecord], files: Collection[str]) -> None:
        if (version := self.read()) is not None:
            tablehistory.forgotten_by(self.store, version, ended)

    def _library(self) -> icebergtable.TableLibrary:
        if self.library is None:
            raise unreachable(self.store)
        return self.library


@dataclass(frozen=True)
class CatalogedTable:
    """The table in a catalog."""

    store: ObjectStore
    table: icebergtable.CatalogTable

    def read(self) -> icebergtable.TableVersion | None:
        """As `OutputTable.read`; `PublicationError` if the table is not this folder's."""
        version = self.table.read()
        owner = None if version is None else version.properties.get(icebergtable.OWNER, "")
        if owner is not None and owner != self.store.uri:
            raise PublicationError(
                f"the table {self.table.name} was not made for this output, and is left as it is",
                path="spec.outputFolder.table",
                found=owner or "a table that Snaploom did not make",
                expected=f"no table of this name, or the one of {self.store.uri}",
                hint="publish to another table, or take that one out of the catalog",
            )
        return version

    def begin(self, schema: str, field_name: str) -> None:
        properties = {**OF_CATALOG, icebergtable.OWNER: self.store.uri}
        self.table.create(self.store.uri, schema, field_name, properties)
        self.read()

    def before(self, version: icebergtable.TableVersion) -> str | None:
        """As `OutputTable.before`; empty before the first."""
        return version.properties.get(icebergtable.LAST_COMMIT, "")

    def put(
        self, version: icebergtable.TableVersion, change: icebergtable.TableChange, commit: str
    ) -> bool:
        """As `OutputTable.put`.

        Raises:
            CommitOutcomeUnknown: nothing shows whether the catalog has the commit.
        """
        _refuse_links(self.store, change)
        named = {icebergtable.LAST_COMMIT: commit}
        unknown: SnaploomError | None = None
        try:
            if self.table.commit(self.store.uri, version, replace(change, properties=named)):
                return True
        except CommitOutcomeUnknown as error:
            unknown = error
        # A refusal proves nothing either: who repeats a request whose answer was lost is refused.
        try:
            found = self.read()
        except SnaploomError as error:
            raise CommitOutcomeUnknown(
                f"the table {self.table.name} may have the commit: {error.message}"
            ) from error
        if found is not None and commit in tablehistory.commits_of(self.store, found):
            return True
        if unknown is not None:
            raise unknown
        return False

    def revoke(self, run_ids: frozenset[str], now: EpochNanos) -> None:
        rebased(lambda: self._revoked(run_ids), contended(f"the table {self.table.name}"))

    def _revoked(self, run_ids: frozenset[str]) -> bool | None:
        version = self._existing()
        if run_ids <= version.revoked:
            return True
        revoked = " ".join(sorted(version.revoked | run_ids))
        change = icebergtable.TableChange(
            schema="",
            field_name="",
            added={},
            ended=(),
            summary={icebergtable.REVOKED: " ".join(sorted(run_ids))},
            properties={icebergtable.REVOKED: revoked},
        )
        # Whether it is there shows when the table is read again.
        self.table.commit(self.store.uri, version, change)
        return None

    def forget(
        self, ended: Collection[TombstoneRecord], files: Collection[str], now: EpochNanos
    ) -> None:
        """As `OutputTable.forget`; others may have made an ended version the newest again."""
        version = self._existing()
        forgotten = self._forgotten(version, ended)
        if forgotten:
            self.table.forget(forgotten)
        # Asked after the catalog forgot the others: what it still shows then is held.
        if unused := self._unused(version, files, set()):
            self.table.forget(unused)
        if forgotten:
            tablehistory.remove_unneeded(self.store, self.table.lists(), now - OTHERS_LISTS_MARGIN)

    def refuse_held(self, ended: Collection[TombstoneRecord], files: Collection[str]) -> None:
        version = self._existing()
        self._unused(version, files, self._forgotten(version, ended))

    def _forgotten(
        self, version: icebergtable.TableVersion, ended: Collection[TombstoneRecord]
    ) -> set[int]:
        forgotten = tablehistory.forgotten_by(self.store, version, ended)
        return {n for n in map(icebergtable.number_of, forgotten) if n is not None}

    def _unused(
        self, version: icebergtable.TableVersion, files: Collection[str], forgotten: set[int]
    ) -> set[int]:
        """Further snapshots to forget; `SnapshotsHeld` where others show some of the files."""
        shown = self.table.showing(files)
        unused = shown.keys() & tablehistory.unused_by(version) - forgotten
        gone = unused | forgotten
        if held := {key for number, keys in shown.items() if number not in gone for key in keys}:
            raise tablehistory.shown_again(self.table.name, sorted(held))
        return unused

    def _existing(self) -> icebergtable.TableVersion:
        version = self.read()
        if version is None:
            raise corrupt(self.table.name, "no table, though one was begun")
        return version


def _refuse_links(store: ObjectStore, change: icebergtable.TableChange) -> None:
    refuse_links(store, [file.path for files in change.added.values() for file in files])
