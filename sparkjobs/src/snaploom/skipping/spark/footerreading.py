"""Reading Parquet footers wherever the files are: here, on the executors, or through the JVM.

Files of the local file system are read by Python: by threads of the driver, and where they are many
by the executors, which then see the same file system, as Spark itself demands of it. Only Hadoop
knows how to reach other file systems, with what the session says about endpoints and credentials,
and it lives in the JVM: there many requests are under way at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from snaploom.skipping.spark.footers import Footer, FooterTerm, footer_of
from snaploom.skipping.spark.hadoop import local_path
from snaploom.skipping.spark.janino import JavaRule

_TAIL = 8
"""Bytes at the end of a file: length of the footer, and the magic word."""
_MAGIC = b"PAR1"
"""What stands at the end, unless the footer is encrypted."""
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
class FooterReader:
    """What is looked for in footers; goes to the executors."""

    terms: tuple[FooterTerm, ...]
    """Columns and fields."""
    is_case_sensitive: bool
    """Whether Spark tells names apart by case (`spark.sql.caseSensitive`)."""

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
            content = _end_of(name)
        except (OSError, ValueError) as error:
            return Footer(failure=f"{type(error).__name__}: {error}")
        found = self._parse(content)
        return replace(found, length=found.length + _TAIL)

    def _parse(self, content: bytes) -> Footer:
        return footer_of(content, self.terms, is_case_sensitive=self.is_case_sensitive)

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


def _end_of(name: str) -> bytes:
    """The end of a file, from where its footer begins; two reads, and no byte more."""
    with open(name, "rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size < _TAIL:
            raise ValueError(f"{size} bytes are no Parquet file")
        file.seek(size - _TAIL)
        tail = file.read(_TAIL)
        if tail[4:] != _MAGIC:
            raise ValueError(f"no Parquet file: it does not end in {_MAGIC.decode()}")
        length = int.from_bytes(tail[:4], "little") + _TAIL
        if length > size:
            raise ValueError(f"a footer of {length} bytes in a file of {size}")
        file.seek(size - length)
        return file.read(length)
