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
from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from snaploom.skipping.core.terms import Term
from snaploom.skipping.indexes.base import FooterColumn
from snaploom.skipping.spark.relations.hadoop import local_path
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.storage.parquetfooters import END, FooterInvalid, local_footer_bytes, parse_footer
from snaploom.storage.parquetstatistics import column_statistics, depends_on_zone, lacks

_THREADS = 8

MANY_FILES = 2_000
"""Files from which on the executors read them: a job costs as much as a few hundred footers, which
take 0.2 ms each (measured, Spark 4.3 and pyarrow)."""
_FILES_OF_A_TASK = 250
"""Fewest files of a task: 50 ms of work."""

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
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._read_local, names))

    def _read_local(self, name: str) -> Footer:
        try:
            content = local_footer_bytes(name)
        except (OSError, ValueError) as error:
            return Footer(failure=f"{type(error).__name__}: {error}")
        found = self._parse(content)
        return replace(found, length=found.length + END)

    def _parse(self, content: bytes) -> Footer:
        try:
            metadata = parse_footer(content)
        except FooterInvalid as error:
            return Footer(failure=str(error))
        return Footer(
            rows=metadata.num_rows,
            columns=tuple(self._column(metadata, term) for term in self.terms),
            length=len(content),
            depends_on_zone=depends_on_zone(metadata),
        )

    def _column(self, metadata: pq.FileMetaData, term: FooterTerm) -> FooterColumn | None:
        """What a footer proves about a term, or None."""
        if lacks(metadata, term.names, is_case_sensitive=self.is_case_sensitive):
            missing = FooterColumn(values=0, nulls=metadata.num_rows, minimum=None, maximum=None)
            return None if term.has_default else missing
        found = column_statistics(
            metadata, term.names, term.data_type, is_case_sensitive=self.is_case_sensitive
        )
        if found is None:
            return None
        lows, highs = zip(*found.bounds, strict=True) if found.bounds else ((), ())
        minimum, maximum = min(lows, default=None), max(highs, default=None)
        return FooterColumn(found.values, found.nulls, minimum, maximum)

    def _on_executors(self, spark: SparkSession, names: Sequence[str]) -> list[Footer]:
        context = spark.sparkContext
        tasks = min(4 * context.defaultParallelism, len(names) // _FILES_OF_A_TASK)
        return context.parallelize(names, max(1, tasks)).mapPartitions(self._of_a_task).collect()

    def _of_a_task(self, names: Iterable[str]) -> Iterator[Footer]:
        return map(self._read_local, names)

    def _through_the_jvm(
        self, spark: SparkSession, lengths: Mapping[str, int]
    ) -> Iterator[tuple[str, Footer]]:
        ends = JavaRule(spark).footers(
            spark._jsparkSession, list(lengths), list(lengths.values()), _FIRST_BYTES
        )
        for (path, length), content in zip(lengths.items(), ends, strict=True):
            if isinstance(content, str):
                yield path, Footer(failure=content)
            else:
                found = self._parse(content)
                yield path, replace(found, length=max(found.length, min(length, _FIRST_BYTES)))
