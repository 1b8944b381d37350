"""Difference between the current files and the rows about them, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable

_REST = tuple(name for name, _ in IDENTITY_FIELDS[1:])


@dataclass(frozen=True)
class FileChanges:
    """Changes of the files since the rows were made."""

    new: pa.Table
    """Files without a row; identity columns, as all of these."""
    changed: pa.Table
    """Files whose row is about another content (rule S5), as they are now."""
    unchanged: pa.Table
    """Files that the rows describe."""
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
        """Summary for people: `2 new, 1 changed, 0 removed, 197 unchanged`."""
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
