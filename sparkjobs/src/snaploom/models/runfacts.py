"""Facts in a Report besides snapshots: sources that were read, an index, and removed data."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, MaxLen

from snaploom.models.base import ApiModel
from snaploom.models.common import Atomic, MessageText, ShortText, TimestampText
from snaploom.models.skippingindex import IndexedFiles, IndexState

Lines = Annotated[tuple[MessageText, ...], MaxLen(100), Atomic]


class SeenSource(ApiModel):
    """One source as a run saw it."""

    source: ShortText
    """Name of the DataSource."""
    latest_snapshot: TimestampText | None = None
    """Newest snapshot; omitted when there is none, and for a source without history."""
    snapshots: Annotated[int, Ge(0)] | None = None
    """Number of snapshots; omitted for a source without history."""
    schema_fingerprint: ShortText | None = None
    """Hash over names, types and order of its columns, as last read; omitted when nothing was."""


class IndexFacts(ApiModel):
    """State of an index after a run of a SkippingIndex."""

    state: IndexState
    """State of the index."""
    files: IndexedFiles | None = None
    """How much of the target it covers; omitted when there is no index any more."""
    bytes: Annotated[int, Ge(0)] | None = None
    """Size of the index; omitted where its store does not report it."""
    last_refreshed: TimestampText | None = None
    """When it was last refreshed."""
    done: Lines = ()
    """Actions on it, in a few words each; empty when there was nothing to do."""
    warnings: Lines = ()
    """Warnings about it, for people."""


class CollectedFiles(ApiModel):
    """Files of snapshots that are no longer published, removed by a run at its end."""

    snapshots: Annotated[int, Ge(0)] = 0
    """Deleted and replaced snapshots whose files are removed."""
    files: Annotated[int, Ge(0)] = 0
    """Number of their files, and of those that runs which died left in staging."""
    bytes: Annotated[int, Ge(0)] = 0
    """Size of all these."""
    waiting: Annotated[int, Ge(0)] = 0
    """Deleted and replaced snapshots whose files stay: readers may be at them, or one run does not
    remove as many."""


class UnregisteredTable(ApiModel):
    """The catalog table of an output (`registerTable`) that is being deleted."""

    name: ShortText
    """Its name."""
    is_dropped: bool = False
    """Whether it was dropped."""
    left: ShortText = ""
    """Whose it is where it stays, since it was not made for this output; else empty."""


class Removed(ApiModel):
    """Data that a run removed because its resource is being deleted (rule R12)."""

    files: Annotated[int, Ge(0)]
    """Number of files, those of the folder's own record included."""
    bytes: Annotated[int, Ge(0)]
    """Their size."""
    left: Annotated[int, Ge(0)] = 0
    """Number of files that Snaploom did not write; they stay."""
    left_names: Annotated[tuple[ShortText, ...], MaxLen(20), Atomic] = ()
    """The first of them."""
    table: UnregisteredTable | None = None
    """The catalog table, where the output has one."""
