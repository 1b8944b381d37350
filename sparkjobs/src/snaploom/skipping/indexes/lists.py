"""Kept lists of values: one list a file, asked value by value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snaploom.skipping.core.filetable import FileTable, Mask, field_column
from snaploom.skipping.core.valueorder import Int64s, Keys, keys_of
from snaploom.skipping.indexes.columns import as_mask


@dataclass(frozen=True)
class KeptLists:
    """Lists of all files, concatenated."""

    keys: Keys
    """Keys of the values of all lists."""
    valid: Mask | None
    """Which values are no NULL; None for all."""
    offsets: Int64s
    """Where each file's list begins, and where the last one ends."""
    known: Mask
    """Files whose list is kept."""

    def any_of(self, matching: Mask) -> Mask:
        """For each file, whether some value matches; True where the list is not kept."""
        if self.valid is not None:
            matching = matching & self.valid
        upto = np.concatenate([[0], np.cumsum(matching, dtype=np.int64)])
        found = upto[self.offsets[1:]] > upto[self.offsets[:-1]]
        return np.asarray(found | ~self.known, dtype=np.bool_)


def kept_lists(files: FileTable, index_id: str, field: str, data_type: str) -> KeptLists:
    """The lists that an index keeps in a field."""
    column = field_column(index_id, field)

    def find() -> KeptLists:
        lists = files.column(column)
        values = lists.values
        offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        valid = as_mask(values.is_valid()) if values.null_count else None
        return KeptLists(keys_of(values, data_type), valid, offsets, as_mask(lists.is_valid()))

    return files.derived(f"{column} lists", find)
