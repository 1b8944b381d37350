"""Port to the place of one skipping index.

A store holds *rows* (tables as `snaploom.skipping.core.filetable` describes them) in *segments*,
which never change, and *states*, of which the newest counts. A commit is one compare-and-swap of
the state: a put-if-absent of the next number on object stores, a conditional write on OpenSearch.
Rows that are written and never committed are garbage, not data: a failed build changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import pyarrow as pa
from annotated_types import Ge, Le, MaxLen
from pydantic import StringConstraints

from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable

NEVER = EpochNanos(0)

LATEST = EpochNanos(253_402_300_799_999_999_999)
"""The end of the year 9999, up to which times can be written."""

StoredTime = Annotated[EpochNanos, Ge(0), Le(LATEST)]
"""A time in a document, which anybody may have written."""

Count = Annotated[int, Ge(0), Le(1 << 50)]
"""A number of rows, bytes or queries there."""

SegmentName = Annotated[str, StringConstraints(pattern=r"^[0-9a-z][0-9a-z.-]{0,79}$")]
"""Names a segment in its store, and nothing elsewhere: no folder, no other document."""

StateNumber = Annotated[int, Ge(0), Le(10**15)]
"""Number of a state: more than can be counted to."""

IndexId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,32}$")]
"""Id of an index: begins names of columns, which have a dot behind it."""


@dataclass(frozen=True)
class Segment:
    """Some rows, written once. A later segment's row for a path hides an earlier segment's."""

    name: SegmentName
    rows: Count
    bytes: Count
    """Size in the store; 0 where the store does not report it."""
    removed: bool = False
    """The rows have `path` only: these files are gone, and earlier rows about them do not count."""
    indexes: Annotated[tuple[IndexId, ...], MaxLen(1024)] = ()
    """Ids of the indexes about which the segment has columns."""
    merges: bool = False
    """Rows complete earlier rows of the same path and identity with the columns of `indexes` (an
    index was added) instead of hiding them."""


@dataclass(frozen=True)
class StoredState:
    """One committed state of a skipping index."""

    version: StateNumber
    """Number of the commit, from 1; 0 when there is no index."""
    phase: IndexState = IndexState.EMPTY
    """State of Flint's machine (rule S25)."""
    definition: SkippingDefinition | None = None
    """Definition; None when there is no index, or it is vacuumed."""
    segments: tuple[Segment, ...] = ()
    """Rows that count, oldest first."""
    committed_at: StoredTime = NEVER
    """Time at which this state was committed, by the writer's clock."""
    refreshed_at: StoredTime = NEVER
    """Time at which rows were last brought up to date; an index that never was prunes nothing (rule
    S8)."""
    checked_at: StoredTime = NEVER
    """Time of the last comparison of files and rows; later than `refreshed_at` where that found
    nothing to do."""
    next_index: Annotated[int, Ge(1), Le(10**9)] = 1
    """Number of the next `index_id`: ids are never used twice, not even after a drop."""
    operation: str = ""
    """Token of the operation in flight, in transient phases."""
    heartbeat_at: StoredTime = NEVER
    """Last sign of life of the operation in flight."""
    message: str = ""
    """The message of the last operation: the error in FAILED."""
    trusted: bool = True
    """False for imports that are not verified: they are never used for skipping (rule S28)."""

    @property
    def exists(self) -> bool:
        """Whether there is a skipping index, in any condition."""
        return self.definition is not None and self.phase not in _GONE

    @property
    def may_skip(self) -> bool:
        """Whether queries may use the rows; failed and running operations leave the former ones."""
        definition = self.definition
        is_used = definition is not None and definition.enabled and self.phase not in _GONE
        return is_used and self.trusted and self.refreshed_at != NEVER


_GONE = (IndexState.DELETING, IndexState.DELETED, IndexState.VACUUMING)

NOTHING = StoredState(version=0)
"""The state where there is no index."""


class IndexStore(Protocol):
    """Place of one skipping index."""

    @property
    def uri(self) -> str:
        """URI for people and logs; no secrets in it."""
        ...

    def read(self) -> StoredState:
        """The newest committed state; `NOTHING` where there is none.

        Raises:
            IndexUnreadable: the state is damaged or from a newer Snaploom (rule S14).
        """
        ...

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        """Replace the state, rebased on other commits.

        Args:
            build: from the newest state, its successor (`version` is set here), or None to leave
                it; called again after a lost race. Its exceptions end the commit.

        Raises:
            IndexBusy: too many lost races.
        """
        ...

    def write_rows(self, rows: Iterable[pa.Table], definition: SkippingDefinition) -> list[Segment]:
        """Write rows (in bounded pieces) as new segments, which nobody sees until committed."""
        ...

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> Segment:
        """Write a segment that lists the files that are gone; encrypted as rows are."""
        ...

    def open(self, state: StoredState) -> FileTable:
        """The rows of a state, hidden and removed ones left out, columns read when needed.

        Raises:
            IndexUnreadable: a segment is damaged or absent.
            KeyUnavailable: it is encrypted, and the key is unavailable.
        """
        ...

    def sweep(self, keep: StoredState, older_than: EpochNanos) -> tuple[int, int]:
        """Remove old segments no state from `keep` on needs; returns files and bytes removed."""
        ...

    def destroy(self) -> None:
        """Remove everything but the newest state (VACUUM)."""
        ...

    def compact(self, state: StoredState) -> tuple[Segment, ...]:
        """Write rows in fewer segments, invisible until committed; the same if nothing is gained.

        Only what pays is rewritten. A store whose segments are no pieces has nothing to do.

        Raises:
            IndexUnreadable: a segment is damaged or absent.
            KeyUnavailable: it is encrypted, and the key is unavailable.
        """
        ...
