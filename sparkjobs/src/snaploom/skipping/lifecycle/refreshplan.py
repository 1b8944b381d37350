"""The plan of a refresh, made beforehand from the difference of files and rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible, IndexUnreadable
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.core.definition import IndexDefinition, ReaderFingerprint, SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable
from snaploom.skipping.core.terms import Term
from snaploom.skipping.lifecycle.declaration import IndexableTarget, resolve_again
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState

# Difference between the current files and the rows about them, as data.

_REST = tuple(name for name, _ in IDENTITY_FIELDS[1:])


@dataclass(frozen=True)
class FileChanges:
    """Changes of the files since the rows were made."""

    new: pa.Table
    """Files without a row; identity columns, as all of these."""
    changed: pa.Table
    """Files whose row is about another content (rule S5), as they are now."""
    unchanged: pa.Table
    removed: pa.Array
    """Paths of rows whose files are gone."""

    @property
    def to_build(self) -> pa.Table:
        """Files that need rows."""
        return pa.concat_tables([self.new, self.changed])

    @property
    def is_empty(self) -> bool:
        """Whether rows and files agree."""
        return not (self.new.num_rows or self.changed.num_rows or len(self.removed))

    def __str__(self) -> str:
        return (
            f"{self.new.num_rows} new, {self.changed.num_rows} changed, "
            f"{len(self.removed)} removed, {self.unchanged.num_rows} unchanged"
        )


def compare(listing: pa.Table, known: FileTable) -> FileChanges:
    """Compare files with rows, by path and then by everything else of the identity."""
    listing = listing.combine_chunks()
    paths, known_paths = _whole(listing.column("path")), known.column("path")
    # Rows are kept in the order of their paths, in which folders are listed: as a rule neither
    # differs, and then no path has to be looked for.
    if paths.equals(known_paths):
        found, is_known = None, pa.array(np.ones(len(paths), np.bool_))
        removed = known_paths.slice(0, 0)
    else:
        found = pc.index_in(paths, value_set=known_paths)
        is_known = found.is_valid()
        removed = known_paths.filter(pc.invert(pc.is_in(known_paths, value_set=paths)))
    is_same = is_known
    for name in _REST:
        now, then = _whole(listing.column(name)), known.column(name)
        if found is not None:
            then = then.take(found)
        is_equal = pc.fill_null(pc.equal(now, then), False)
        are_absent = pc.and_(now.is_null(), then.is_null())
        is_same = pc.and_(is_same, pc.or_(is_equal, are_absent))
    return FileChanges(
        new=listing.filter(pc.invert(is_known)),
        changed=listing.filter(pc.and_(is_known, pc.invert(is_same))),
        unchanged=listing.filter(is_same),
        removed=removed,
    )


def everything_new(listing: pa.Table) -> FileChanges:
    """The difference where there are no rows."""
    nothing = listing.schema.empty_table()
    return FileChanges(listing, nothing, nothing, pa.array([], pa.large_string()))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


# Plan of a refresh, decided before anything is done.


@dataclass(frozen=True)
class RefreshPlan:
    """Plan of a refresh."""

    mode: RefreshMode
    """FULL or INCREMENTAL."""
    reasons: tuple[str, ...]
    """Reason why AUTO chose FULL; empty otherwise."""
    definition: SkippingDefinition
    changes: FileChanges
    """Files and rows compared; everything is new where FULL begins anew."""
    next_index: int
    """Number of the next index id afterwards."""

    @property
    def is_needed(self) -> bool:
        """Whether rows have to be written."""
        return self.mode is RefreshMode.FULL or not self.changes.is_empty

    def __str__(self) -> str:
        because = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"{self.mode.value}{because}: {self.changes}"


def plan_refresh(
    store: IndexStore,
    state: StoredState,
    definition: SkippingDefinition,
    target: IndexableTarget,
    mode: RefreshMode,
    listing: pa.Table,
) -> RefreshPlan:
    """Plan a refresh.

    Raises:
        IndexNotPossible: INCREMENTAL is asked for and the index cannot be continued, or the target
            lost a column.
        IndexUnreadable: INCREMENTAL is asked for and the rows are damaged.
        KeyUnavailable: the rows are encrypted, and the key is unavailable.
    """
    current, reasons, next_index = current_definition(definition, target, state.next_index)
    if mode is RefreshMode.INCREMENTAL and reasons:
        raise IndexNotPossible(
            "the index cannot be continued",
            found="; ".join(reasons),
            expected="files read as when the index was made",
            hint="refresh with mode FULL or AUTO",
        )
    if mode is not RefreshMode.FULL and not reasons:
        if state.refreshed_at == NEVER:
            changes = everything_new(listing)
            return RefreshPlan(RefreshMode.INCREMENTAL, (), current, changes, next_index)
        try:
            changes = compare(listing, store.open(state))
            return RefreshPlan(RefreshMode.INCREMENTAL, (), current, changes, next_index)
        except IndexUnreadable as error:
            if mode is RefreshMode.INCREMENTAL:
                raise
            reasons = (f"the rows cannot be read: {error.message}",)
    changes = everything_new(listing)
    given = reasons if mode is RefreshMode.AUTO else ()
    return RefreshPlan(RefreshMode.FULL, given, current, changes, next_index)


def current_definition(
    definition: SkippingDefinition, target: IndexableTarget, next_index: int
) -> tuple[SkippingDefinition, tuple[str, ...], int]:
    """Resolve the definition against the current target.

    Returns:
        The definition, why rows made with the former one cannot be continued, and the number of
        the next index id: an index whose column has another type gets a new id.
    """
    reasons: list[str] = []
    indexes: list[IndexDefinition] = []
    for index in definition.indexes:
        terms = tuple(resolve_again(term, target) for term in index.terms)
        if terms != index.terms:
            for before, after in zip(index.terms, terms, strict=True):
                if before != after:
                    reasons.append(_other_term(before, after))
            index = replace(index, index_id=f"i{next_index}", terms=terms)
            next_index += 1
        indexes.append(index)
    fingerprint = target.fingerprint.for_indexes(indexes)
    if definition.fingerprint != fingerprint:
        reasons.append(_difference(definition.fingerprint, fingerprint))
    if definition.partition_columns != target.partition_columns:
        reasons.append("the partition columns are others")
    current = replace(
        definition,
        indexes=tuple(indexes),
        fingerprint=fingerprint,
        partition_columns=target.partition_columns,
    )
    return current, tuple(reasons), next_index


def _other_term(before: Term, after: Term) -> str:
    if before.data_type != after.data_type:
        return f"{before.label} is {after.data_type}, was {before.data_type}"
    if before.is_outdated:
        return f"an older Snaploom, which did not distinguish all literals, indexed {before.label}"
    return f"Spark analyses {before.label} otherwise than when it was declared"


def _difference(before: ReaderFingerprint, after: ReaderFingerprint) -> str:
    if before.format != after.format:
        return f"the format is {after.format}, was {before.format}"
    then = dict((*before.options, *before.settings, *before.evaluation))
    since = dict((*after.options, *after.settings, *after.evaluation))
    names = [name for name in {**then, **since} if then.get(name) != since.get(name)]
    if not names:
        return "the schema of the files is another one"
    return "; ".join(
        f"{name} is {since.get(name, 'not set')}, was {then.get(name, 'not set')}" for name in names
    )
