"""Facts about files: one row per file, columns read when first needed.

Columns of every table of rows, of any maker and in any store:

| column | Arrow type | meaning |
|---|---|---|
| `path` | large_string | Hadoop path as Spark lists it (`Path.toString()`, nothing encoded) |
| `length` | int64 | bytes |
| `modified` | int64 | milliseconds since 1970 |
| `etag` | large_string, null | the store's tag of the content, where it has one |
| `<id>.values` | int64, null | rows in which the index's (first) term is not NULL; null: unknown |
| `<id>.nulls` | int64, null | rows in which it is NULL |
| `<id>.values.1`, `<id>.nulls.1` ... | | the same for further terms |
| `<id>.<field>` | by type | what the type keeps, see `snaploom.skipping.indexes` |

`<id>` is the index's `index_id`. A row whose `values` is null has nothing of that index: the
file is kept. Path, length, modification time and etag are a file's identity (rule S5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IDENTITY_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("path", pa.large_string()),
    ("length", pa.int64()),
    ("modified", pa.int64()),
    ("etag", pa.large_string()),
)

T = TypeVar("T")

Mask = npt.NDArray[np.bool_]
"""One truth value a file."""


def values_column(index_id: str, position: int = 0) -> str:
    """Column that counts rows in which a term of an index is not NULL."""
    return f"{index_id}.values" if position == 0 else f"{index_id}.values.{position}"


def nulls_column(index_id: str, position: int = 0) -> str:
    """Column that counts rows in which a term of an index is NULL."""
    return f"{index_id}.nulls" if position == 0 else f"{index_id}.nulls.{position}"


def field_column(index_id: str, field: str) -> str:
    """Column of a field that the type of an index keeps."""
    return f"{index_id}.{field}"


class FileTable:
    """Rows of one pinned state of an index. Each column is loaded once; derived ones are cached."""

    def __init__(self, count: int, load: Callable[[Sequence[str]], pa.Table]) -> None:
        self.count = count
        self._load = load
        self._columns: dict[str, pa.Array] = {}
        self._derived: dict[str, object] = {}

    @classmethod
    def of(cls, rows: pa.Table) -> FileTable:
        """A table whose rows are in memory."""
        return cls(rows.num_rows, lambda names: rows.select(list(names)))

    def column(self, name: str) -> pa.Array:
        """One column as one array; `KeyError` if there is none."""
        if name not in self._columns:
            column = self._load([name]).column(name)
            self._columns[name] = (
                column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            )
        return self._columns[name]

    def derived(self, key: str, make: Callable[[], T]) -> T:
        """Something computed from columns, once."""
        if key not in self._derived:
            self._derived[key] = make()
        return cast(T, self._derived[key])
