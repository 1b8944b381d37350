"""What Parquet footers prove about terms, wherever the files are: here, on executors, by the JVM.

By the rules of `storage.parquetstatistics`; a column that is not in the file is NULL in every row,
unless it was added with a default (rule S19).

Files of the local file system are read by Python: by threads of the driver, and where they are many
by the executors, which then see the same file system, as Spark itself demands of it. Only Hadoop
knows how to reach other file systems, with what the session sets about endpoints and credentials,
and it lives in the JVM: there many requests are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from snaploom.skipping.core.terms import Term
from snaploom.skipping.indexes.base import FooterColumn
from snaploom.skipping.spark.relations.hadoop import local_path
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.storage.compactthrift import StructInvalid, schema_bytes
from snaploom.storage.parquetfooters import (
    END,
    FooterInvalid,
    bare_footer,
    local_footer_bytes,
    parse_footer,
)
from snaploom.storage.parquetstatistics import (
    ABSENT,
    depends_on_zone,
    leaf_statistics,
    trusted_leaf,
)

_THREADS = 8

MANY_FILES = 2_000
"""Files from which on the executors read them: a job costs as much as a few hundred footers, which
take 0.2 ms each (measured, Spark 4.3 and pyarrow)."""
_FILES_OF_A_TASK = 250
"""Fewest files of a task: 50 ms of work."""

_SCHEMAS = 8
"""Schemas that are remembered at a time; files beyond are looked through one by one."""

_FILES_OF_A_CALL = 500
"""Files that the JVM reads at once; one may interrupt between two calls."""
_FIRST_BYTES = 1 << 15
"""Bytes that are asked of a remote file at once: most footers are shorter, and a second request
costs more than they do."""


@dataclass(frozen=True)
class FooterTerm:
    """A column or nested field that is looked for in footers."""

    names: tuple[str, ...]
    """From the top-level column to the field, as in Spark's schema."""
    data_type: str
    """Spark's type, as its `catalogString`."""
    has_default: bool = False
    """Whether it, or a struct around it, was added with a default value."""

    @classmethod
    def of(cls, term: Term, *, has_default: bool = False) -> FooterTerm | None:
        """The same of a term; None for an expression."""
        names = term.names
        return None if names is None else cls(names, term.data_type, has_default)


@dataclass(frozen=True)
class Footer:
    """What one footer proves."""

    rows: int | None = None
    """Rows in the file; None when the footer cannot be read."""
    columns: tuple[FooterColumn | None, ...] = ()
    """One for each term, in order; None where nothing is proved."""
    length: int = 0
    """Bytes that were read."""
    depends_on_zone: bool = False
    """Whether timestamps in the file are other ones when the reader's time zone is another."""
    failure: str = field(default="", compare=False)
    """Why it cannot be read."""


@dataclass(frozen=True)
class FooterReader:
    """What is looked for in footers; goes to the executors."""

    terms: tuple[FooterTerm, ...]
    """Columns and fields."""
    is_case_sensitive: bool
    """Whether Spark distinguishes names by case (`spark.sql.caseSensitive`)."""

    def read(self, spark: SparkSession, lengths: Mapping[str, int]) -> dict[str, Footer]:
        """Footers by path.

        Args:
            spark: the session.
            lengths: bytes that each file has, by its path as Hadoop writes it.
        """
        local = {path: name for path in lengths if (name := local_path(path)) is not None}
        remote = [path for path in lengths if path not in local]
        if len(local) < MANY_FILES:
            found = self.read_local(list(local.values()))
        else:
            found = self._on_executors(spark, list(local.values()))
        footers = dict(zip(local, found, strict=True))
        for start in range(0, len(remote), _FILES_OF_A_CALL):
            some = {path: lengths[path] for path in remote[start : start + _FILES_OF_A_CALL]}
            footers.update(self._through_the_jvm(spark, some))
        return footers

    def read_local(self, names: Sequence[str]) -> list[Footer]:
        """Footers of files of this machine, by several threads.

        Args:
            names: as the operating system has them.
        """
        known = _KnownSchemas(self)
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(lambda name: self._read_local(name, known), names))

    def _read_local(self, name: str, known: _KnownSchemas) -> Footer:
        try:
            content = local_footer_bytes(name)
        except (OSError, ValueError) as error:
            return Footer(failure=f"{type(error).__name__}: {error}")
        return self._parse(content, known, len(content) + END)

    def _parse(self, content: bytes, known: _KnownSchemas, length: int) -> Footer:
        try:
            metadata = parse_footer(content)
        except FooterInvalid as error:
            return Footer(failure=str(error), length=length)
        schema = known.of(content, metadata)
        return Footer(
            rows=metadata.num_rows,
            columns=tuple(map(partial(_column, metadata), self.terms, schema.leaves)),
            length=length,
            depends_on_zone=schema.depends_on_zone,
        )

    def schema_of(self, metadata: pq.FileMetaData) -> _Schema:
        """What footers of a schema, a writer and notes have in common."""
        leaves = (
            trusted_leaf(
                metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
            )
            for term in self.terms
        )
        return _Schema(
            metadata.schema,
            metadata.metadata,
            metadata.created_by,
            tuple(leaves),
            depends_on_zone(metadata),
        )

    def _on_executors(self, spark: SparkSession, names: Sequence[str]) -> list[Footer]:
        context = spark.sparkContext
        tasks = min(4 * context.defaultParallelism, len(names) // _FILES_OF_A_TASK)
        return context.parallelize(names, max(1, tasks)).mapPartitions(self._of_a_task).collect()

    def _of_a_task(self, names: Iterable[str]) -> Iterator[Footer]:
        known = _KnownSchemas(self)
        return (self._read_local(name, known) for name in names)

    def _through_the_jvm(
        self, spark: SparkSession, lengths: Mapping[str, int]
    ) -> Iterator[tuple[str, Footer]]:
        ends = JavaRule(spark).footers(
            spark._jsparkSession, list(lengths), list(lengths.values()), _FIRST_BYTES
        )
        known = _KnownSchemas(self)
        for (path, length), content in zip(lengths.items(), ends, strict=True):
            if isinstance(content, str):
                yield path, Footer(failure=content)
            else:
                read = max(len(content), min(length, _FIRST_BYTES))
                yield path, self._parse(content, known, read)


@dataclass(frozen=True)
class _Schema:
    """What footers have in common that were written alike."""

    schema: pq.ParquetSchema
    notes: Mapping[bytes, bytes] | None
    writer: str
    leaves: tuple[int | None, ...]
    """For each term, as `trusted_leaf` gives it."""
    depends_on_zone: bool

    def describes(self, metadata: pq.FileMetaData) -> bool:
        """Whether a footer that begins with the same bytes was written alike."""
        is_noted = self.notes == metadata.metadata and self.writer == metadata.created_by
        return is_noted and bool(self.schema.equals(metadata.schema))


class _KnownSchemas:
    """Schemas that were looked through: files of one table have few, and a look takes long."""

    def __init__(self, reader: FooterReader) -> None:
        self._reader = reader
        self._known: tuple[tuple[bytes, _Schema], ...] = ()

    def of(self, content: bytes, metadata: pq.FileMetaData) -> _Schema:
        """What a footer has in common with others of its schema."""
        footer = bare_footer(content)
        for beginning, schema in self._known:
            if footer.startswith(beginning) and schema.describes(metadata):
                return schema
        schema = self._reader.schema_of(metadata)
        try:
            beginning = schema_bytes(footer)
        except StructInvalid:
            return schema
        # Other threads may do the same at once, and then only one of the schemas is kept.
        self._known = ((beginning, schema), *self._known)[:_SCHEMAS]
        return schema


def _column(metadata: pq.FileMetaData, term: FooterTerm, leaf: int | None) -> FooterColumn | None:
    """What a footer proves about a term, or None."""
    if leaf == ABSENT:
        missing = FooterColumn(values=0, nulls=metadata.num_rows, minimum=None, maximum=None)
        return None if term.has_default else missing
    found = None if leaf is None else leaf_statistics(metadata, leaf, term.data_type)
    if found is None:
        return None
    lows, highs = zip(*found.bounds, strict=True) if found.bounds else ((), ())
    minimum, maximum = min(lows, default=None), max(highs, default=None)
    return FooterColumn(found.values, found.nulls, minimum, maximum)
