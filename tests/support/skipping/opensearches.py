"""Things of OpenSearch for tests: options, names, definitions and rows."""

import itertools

import pyarrow as pa

from snaploom.plugins.flint.options import OpenSearchOptions
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
)
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.core.terms import column_term

_numbers = itertools.count()


def options_of(port: int, **changes: object) -> OpenSearchOptions:
    return OpenSearchOptions(host="127.0.0.1", port=port, **changes)  # type: ignore[arg-type]


def unused_name(prefix: str = "flint_test") -> str:
    return f"{prefix}_{next(_numbers)}_skipping_index"


def an_index(index_id: str, kind: str, column: str, data_type: str) -> IndexDefinition:
    return IndexDefinition(index_id, kind, (column_term(tuple(column.split(".")), data_type),))


def a_definition(*indexes: IndexDefinition) -> SkippingDefinition:
    return SkippingDefinition(
        target=Target("file:/data/t", table="spark_catalog.default.t", format="parquet"),
        fingerprint=ReaderFingerprint("parquet"),
        indexes=indexes or (an_index("i1", "MIN_MAX", "price", "bigint"),),
    )


def rows_of(columns: dict[str, pa.Array | list[object]], paths: list[str]) -> pa.Table:
    identity = {
        "path": paths,
        "length": [100] * len(paths),
        "modified": [1000] * len(paths),
        "etag": [None] * len(paths),
    }
    arrays = {name: pa.array(identity[name], kind) for name, kind in IDENTITY_FIELDS}
    return pa.table(arrays | columns)


def price_rows(bounds: dict[str, tuple[int, int]]) -> pa.Table:
    """Rows of the index `i1` of `a_definition()`."""
    return rows_of(
        {
            "i1.values": pa.array([5] * len(bounds), pa.int64()),
            "i1.nulls": pa.array([0] * len(bounds), pa.int64()),
            "i1.min": pa.array([low for low, _ in bounds.values()], pa.int64()),
            "i1.max": pa.array([high for _, high in bounds.values()], pa.int64()),
        },
        list(bounds),
    )
