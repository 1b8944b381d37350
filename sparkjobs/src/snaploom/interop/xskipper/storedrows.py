"""Rows of a metadata store of any version: one row per file, columns by position of the index.

| column | Arrow type | meaning |
|---|---|---|
| `path` | large_string | the file, as the store names it |
| `modified` | int64 | its modification time, ms since 1970 |
| `p0`, `p1` ... | by type | value of each partition column |
| `0.known`, `1.known` ... | bool | whether the index has anything about the file |
| `0.present` ... | bool | whether the file has a non-null value |
| `0.min`, `0.max` | by type | minmax: bounds, null where the store has none |
| `0.set` | list by type | valuelist: every value, null where unknown |
| `0.filter` | large_binary | bloomfilter: the filter in Spark's own form |

Values are in Catalyst's internal form (`snaploom.skipping.core.terms`).
"""

from __future__ import annotations

import pyarrow as pa

from snaploom.interop.xskipper.layout import BLOOM, MIN_MAX, VALUE_LIST, StoredIndex
from snaploom.skipping.core.terms import arrow_type

PATH, MODIFIED = "path", "modified"

KNOWN, PRESENT, MINIMUM, MAXIMUM = "known", "present", "min", "max"
SET, FILTER = "set", "filter"


def row_column(position: int, part: str) -> str:
    """Column of an index."""
    return f"{position}.{part}"


def partition_column(position: int) -> str:
    """Column of a partition column's values."""
    return f"p{position}"


def kept_type(data_type: str | None) -> pa.DataType:
    """Arrow type of kept values; null where the type is unknown or cannot be kept."""
    return (arrow_type(data_type) if data_type is not None else None) or pa.null()


def index_fields(position: int, index: StoredIndex) -> list[pa.Field]:
    """Columns of one index."""
    kept_as = kept_type(index.data_type)
    parts: dict[str, pa.DataType] = {KNOWN: pa.bool_(), PRESENT: pa.bool_()}
    if index.name == MIN_MAX:
        parts |= {MINIMUM: kept_as, MAXIMUM: kept_as}
    elif index.name == VALUE_LIST:
        parts |= {SET: pa.large_list(kept_as)}
    elif index.name == BLOOM:
        parts |= {FILTER: pa.large_binary()}
    return [pa.field(row_column(position, part), kept) for part, kept in parts.items()]
