"""Footers of Parquet files: found, bounded and parsed; no other byte of a file is read.

Every reader of footers goes through here: of published files, of sources and of what indexes cover.
Anybody may have written the file: a footer gives its own length, and lists of any length. What is
beyond the bounds is no footer. Paths of columns, which may take far more memory than their footer
has, are bounded in published folders only: a walk in Python takes ten times what Arrow takes (57 ms
of 200 columns), and Spark reads the footers of sources itself, unbounded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from snaploom.planning.schemas import parse_schema
from snaploom.storage.columnchunks import refuse_odd_chunks
from snaploom.storage.compactthrift import StructInvalid, refuse_long_paths
from snaploom.storage.objectstore import ObjectInfo, ObjectStore
from snaploom.storage.pathnames import LARGEST

LONGEST = 64 * 2**20
"""Bytes of a footer: some 100 for a column in a row group, so that it describes 600,000 of them."""
MOST_PARTS = 1_000_000
"""Members of a list in a footer: the limit that Arrow has by itself."""
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Key of the schema of the frame from which Spark wrote a file; Spark reads files by it."""

END = 8
"""Bytes at the end of a file: the length of its footer, and the format's mark."""
_MAGIC = b"PAR1"
"""The mark, unless the footer is encrypted."""

ReadLast = Callable[[int], bytes]
"""Reads so many bytes at the end of a file; raises an `OSError` where it cannot."""


class FooterInvalid(ValueError):
    """A file without a Parquet footer, or with one beyond the bounds."""


def footer_bytes(read_last: ReadLast, size: int, first: int = END) -> bytes:
    """End of a file from its footer or before; reads `first` bytes, and a second time if needed.

    Raises:
        FooterInvalid: there is no footer.
        OSError: the file cannot be read.
    """
    if size < END + len(_MAGIC):
        raise FooterInvalid(f"{size} bytes are no Parquet file")
    end = read_last(min(size, max(first, END)))
    if end[-len(_MAGIC) :] != _MAGIC:
        raise FooterInvalid(f"no Parquet file: it does not end in {_MAGIC.decode()}")
    length = int.from_bytes(end[-END:-4], "little")
    if not 0 < length <= min(LONGEST, size - END - len(_MAGIC)):
        raise FooterInvalid(f"a footer of {length} bytes in a file of {size}")
    return end if length + END <= len(end) else read_last(length + END)


def local_footer_bytes(name: str) -> bytes:
    """As `footer_bytes`, of a file as the operating system names it."""
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        return footer_bytes(lambda count: os.pread(file, count, size - count), size)
    finally:
        os.close(file)


def bare_footer(content: bytes) -> bytes:
    """Strip the length, the format's mark and everything before the footer from a file's end."""
    return content[-END - int.from_bytes(content[-END:-4], "little") : -END]


def framed_footer(footer: bytes) -> bytes:
    """A bare footer with its length and the format's mark, as it is at the end of a file."""
    return footer + len(footer).to_bytes(4, "little") + _MAGIC


def parse_footer(content: bytes) -> pq.FileMetaData:
    """Parse a footer, from the end of a file, that Arrow can be asked about.

    Raises:
        FooterInvalid: it is damaged or beyond the bounds, or a column is encrypted.
    """
    metadata, empty = parse_row_groups(content)
    if empty:
        raise FooterInvalid("a row group without the columns of the file")
    return metadata


def parse_row_groups(content: bytes) -> tuple[pq.FileMetaData, int]:
    """As `parse_footer`, where row groups may have no columns; and how many have none."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(content),
            thrift_string_size_limit=LONGEST,
            thrift_container_size_limit=MOST_PARTS,
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FooterInvalid(f"{type(error).__name__}: {error}") from error
    metadata = file.metadata
    try:
        return metadata, refuse_odd_chunks(bare_footer(content), metadata.schema)
    except StructInvalid as error:
        raise FooterInvalid(str(error)) from error


@dataclass(frozen=True)
class PublishedFooter:
    """Content of the footer of a published file."""

    rows: int
    """Rows of the file."""
    schema: str | None
    """Its schema, as `StructType.json()` gives it; None where Spark did not write it."""


def read_footer(store: ObjectStore, info: ObjectInfo) -> PublishedFooter | None:
    """Footer of a file in a store; None if it is not Parquet, `StorageError` if unreadable."""

    def read_last(count: int) -> bytes:
        return store.get_range(info.key, info.size - count, count)

    try:
        content = footer_bytes(read_last, info.size)
        refuse_long_paths(bare_footer(content))
        metadata = parse_footer(content)
        stored = (metadata.metadata or {}).get(SPARK_SCHEMA)
        schema = None if stored is None else stored.decode("utf-8")
    except (FooterInvalid, StructInvalid, UnicodeDecodeError):
        return None
    return PublishedFooter(metadata.num_rows, schema) if 0 <= metadata.num_rows <= LARGEST else None


def is_spark_schema(text: str) -> bool:
    """Whether a text is a schema of types that are Spark's own."""
    try:
        parse_schema(text, "")
    except ValueError:
        return False
    return True
