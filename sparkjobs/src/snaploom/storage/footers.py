"""Footers of Parquet files: rows, and the schema as Spark wrote it; nothing else of a file is read.

Whoever wrote the file may have meant harm: a footer tells its own length, lists of any length,
and paths of columns that take far more than it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.planning.schemas import parse_schema
from snaploom.storage.compactthrift import StructInvalid, refuse_long_paths
from snaploom.storage.names import LARGEST
from snaploom.storage.objectstore import ObjectInfo, ObjectStore

LONGEST = 64 * 2**20
"""Bytes of a footer: some 100 for a column in a row group, so that it tells 600,000 of them."""
MOST_PARTS = 1_000_000
"""Members of a list in a footer: the limit that Arrow has by itself."""
_END, _MAGIC = 8, b"PAR1"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps the schema of a frame in the footers that it writes."""


@dataclass(frozen=True)
class Footer:
    """What a file of Parquet tells of itself."""

    rows: int
    """Its rows."""
    schema: str | None
    """Its schema, as `StructType.json()` gives it; None where Spark did not write it."""


def read_footer(store: ObjectStore, info: ObjectInfo) -> Footer | None:
    """The footer of a file; None where it is no Parquet.

    Raises:
        StorageError: the file cannot be read.
    """
    if info.size < _END + len(_MAGIC):
        return None
    end = store.get_range(info.key, info.size - _END, _END)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or not 0 < length <= min(LONGEST, info.size - _END - len(_MAGIC)):
        return None
    tail = store.get_range(info.key, info.size - _END - length, length + _END)
    try:
        refuse_long_paths(tail[:-_END])
        file = pq.ParquetFile(
            BytesIO(_MAGIC + tail),
            thrift_string_size_limit=LONGEST,
            thrift_container_size_limit=MOST_PARTS,
        )
        metadata = file.metadata
        told = (metadata.metadata or {}).get(_SPARK_SCHEMA)
        schema = None if told is None else told.decode("utf-8")
    except (pa.ArrowException, OSError, UnicodeDecodeError, StructInvalid):
        return None
    return Footer(metadata.num_rows, schema) if 0 <= metadata.num_rows <= LARGEST else None


def is_spark_schema(text: str) -> bool:
    """Whether a text is a schema of types that are Spark's own."""
    try:
        parse_schema(text, "")
    except ValueError:
        return False
    return True
