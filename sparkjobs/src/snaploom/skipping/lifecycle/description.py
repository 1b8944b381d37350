"""The description of skipping indexes: state, coverage, size and age."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from snaploom.errors import IndexUnreadable, SkippingError, SnaploomError, StorageError
from snaploom.files.objectstore import STORE_FAILURES
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom.policy.addresses import StoreKind, kind_of
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, values_column
from snaploom.skipping.lifecycle.declaration import compare
from snaploom.skipping.stores.catalog import IndexBase
from snaploom.skipping.stores.port import NEVER, NOTHING, IndexStore, StoredState
from snaploom.skipping.stores.usage import Recorded, recorded_usage, usage_log

_EVERYWHERE = "path, length and modification time in milliseconds"
_LOCAL = "inode and time of its last change"


@dataclass(frozen=True)
class Coverage:
    """Comparison of the rows with the current files."""

    indexed: int
    """Files that the rows describe as they are."""
    stale: int
    missing: int
    gone: int
    """Rows whose files are no more."""


@dataclass(frozen=True)
class IndexDescription:
    """One index of a skipping index."""

    definition: IndexDefinition
    known: int
    unknown: int
    """Files that it does not cover: they are kept."""


@dataclass(frozen=True)
class Description:
    """One skipping index."""

    uri: str
    state: StoredState
    """The committed state: phase, definition, times, message."""
    rows: int = 0
    """Files about which there is a row."""
    bytes: int = 0
    """Size of the rows in the store."""
    indexes: tuple[IndexDescription, ...] = ()
    coverage: Coverage | None = None
    """Compared with a listing, where one was given."""
    last_used: EpochNanos | None = None
    """Time at which a query last used it, as far as sessions wrote it down; `NEVER` when none did,
    None where nothing is recorded."""
    same_file: str = ""
    """Criteria by which files count as unchanged; see `same_file`."""
    problem: str = ""
    """Reason why it, or a part of it, is not used; queries read every file meanwhile (rule S14)."""

    @property
    def condition(self) -> str:
        """Current state, or the fact that it cannot be read."""
        return "unreadable" if self.problem and not self.definition else self.state.phase.value

    @property
    def definition(self) -> SkippingDefinition | None:
        return self.state.definition

    def age_seconds(self, at: EpochNanos) -> float | None:
        """Seconds since the rows were last up to date; None if they never were."""
        newest = max(self.state.refreshed_at, self.state.checked_at)
        return None if newest == NEVER else (at - newest) / NANOS_PER_SECOND


@dataclass(frozen=True)
class UsedIndex:
    """Usage of one skipping index by queries."""

    uri: str
    state: StoredState
    recorded: Recorded | None
    """Usage that sessions recorded; None where nothing is recorded."""
    problem: str = ""
    """Reason why its state cannot be read."""

    @property
    def is_there(self) -> bool:
        """Whether there is an index, readable or not."""
        return self.state.exists or bool(self.problem)


def describe(store: IndexStore, listing: pa.Table | None = None) -> Description:
    """Describe the index of a store and its coverage of a listing; reports damage, never raises."""
    state = NOTHING
    last_used = _last_used(store)
    try:
        state = store.read()
        definition = state.definition
        if definition is None:
            return Description(store.uri, state)
        files = store.open(state)
        return Description(
            store.uri,
            state,
            rows=files.count,
            bytes=sum(segment.bytes for segment in state.segments),
            indexes=tuple(_describe(index, files) for index in definition.indexes),
            coverage=None if listing is None else _coverage(listing, files),
            last_used=last_used,
            same_file=same_file(definition.target.uri, files),
            problem=definition.why_outdated,
        )
    except (SkippingError, *STORE_FAILURES) as error:
        return Description(store.uri, state, last_used=last_used, problem=_message(error))


def is_there(store: IndexStore) -> bool:
    """Whether there is or was an index: damaged ones count, so that they can be reported."""
    try:
        return bool(store.read().version)
    except IndexUnreadable:
        return True


def list_indexes(bases: Iterable[IndexBase]) -> list[Description]:
    """Every skipping index below some bases that is not dropped, unreadable ones included."""
    described = [describe(store) for base in bases for store in base.indexes()]
    return [found for found in described if found.state.exists or found.problem]


def _message(error: SnaploomError) -> str:
    return "; ".join(part for part in (error.message, error.found, error.hint) if part)


def _last_used(store: IndexStore) -> EpochNanos | None:
    log = usage_log(store)
    try:
        return None if log is None else log.last_used()
    except StorageError:
        return None


def describe_usage(store: IndexStore) -> UsedIndex:
    """Usage of the index of a store by queries; damage is reported, not raised."""
    recorded = recorded_usage(store)
    try:
        return UsedIndex(store.uri, store.read(), recorded)
    except (SkippingError, *STORE_FAILURES) as error:
        return UsedIndex(store.uri, NOTHING, recorded, _message(error))


def _describe(index: IndexDefinition, files: FileTable) -> IndexDescription:
    unknown = files.column(values_column(index.index_id)).null_count
    return IndexDescription(index, files.count - unknown, unknown)


def _coverage(listing: pa.Table, files: FileTable) -> Coverage:
    changes = compare(listing, files)
    return Coverage(
        indexed=changes.unchanged.num_rows,
        stale=changes.changed.num_rows,
        missing=changes.new.num_rows,
        gone=len(changes.removed),
    )


def same_file(target_uri: str, files: FileTable) -> str:
    """Criteria by which files count as unchanged since they were indexed; empty if none is indexed.

    Path, length and modification time are compared everywhere. Other content depends on what the
    place of the files reports about them, and so on what was written down when they were indexed.
    """
    if not files.count:
        return ""
    further = (kind_of(target_uri) or StoreKind("", ())).tag
    if target_uri.startswith("file:"):
        further = _LOCAL
    tagged = files.count - files.column("etag").null_count
    if tagged == files.count:
        return f"{_EVERYWHERE}, {further}"
    unnoticed = "a rewrite that keeps both is not noticed"
    if not tagged:
        return f"{_EVERYWHERE}; {unnoticed}"
    rest = files.count - tagged
    return f"{_EVERYWHERE}, {further}; of {rest:,} files not the last, so {unnoticed} of them"
