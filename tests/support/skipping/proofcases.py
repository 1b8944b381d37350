"""One small set of files, its index, and queries that must give the same rows on and off."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from support.skipping.onequalsoff import read_files, skipping_by

from snaploom.skipping.lifecycle.operations import RefreshResult
from snaploom.skipping.spark.interfaces.enable import decider_of, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.optimizer.usage import RelationOutcome
from snaploom.skipping.statements.syntax import PathName, Subject, parse_subject

Declare = Callable[[IndexBuilder], IndexBuilder]


@dataclass(frozen=True)
class ProofCase:
    spark: SparkSession
    folder: Path
    file_format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    """Its name in the catalog; empty for files that are read by path."""
    elsewhere: str = ""
    """Where indexes are kept; empty for a folder beside the files."""

    @property
    def path(self) -> Path:
        return self.folder / "t"

    @property
    def location(self) -> str:
        return self.elsewhere or str(self.folder / "indexes")

    def of_format(self, file_format: str, **options: str) -> Self:
        return replace(self, file_format=file_format, options=options)

    def of_table(self, name: str, columns: str, source: str = "parquet") -> Self:
        """The same as a table of the catalog."""
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING {source} LOCATION '{self.path}'")
        return replace(self, table=name, file_format=source)

    def write(self, *files: pa.Table | Mapping[str, Sequence[object]]) -> Self:
        """One Parquet file each, by pyarrow: `f0.parquet`, `f1.parquet`."""
        self.path.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(files):
            table = file if isinstance(file, pa.Table) else pa.table(dict(file))
            pq.write_table(table, self.path / f"f{number}.parquet")
        return self

    def write_sql(self, *selects: str, by: Sequence[str] = ()) -> Self:
        """One file each, by Spark, from queries."""
        for select in selects:
            rows = self.spark.sql(select).coalesce(1).write.mode("append")
            rows.format(self.file_format).partitionBy(*by).save(str(self.path))
        return self

    @property
    def files(self) -> list[Path]:
        return sorted(
            path for path in self.path.rglob("*") if path.is_file() and path.name[0] not in "._"
        )

    def index(self, declare: Declare) -> Self:
        self.declared(declare).create()
        self.refresh()
        return self

    def declared(self, declare: Declare) -> IndexBuilder:
        builder = skipping_index(self.spark, self.location)
        if self.table:
            return declare(builder.on_table(self.table))
        return declare(builder.on_path(str(self.path), self.file_format, **self.options))

    def min_max(self, *columns: str) -> Self:
        return self.index(lambda builder: builder.add_min_max(*columns))

    def refresh(self) -> RefreshResult:
        return self.indexes.refresh(self.subject)

    @property
    def indexes(self) -> SkippingIndexes:
        return SkippingIndexes(self.spark, self.location)

    @property
    def subject(self) -> Subject:
        if self.table:
            return parse_subject(self.table)
        return PathName(self.file_format, str(self.path), tuple(sorted(self.options.items())))

    def read(self) -> DataFrame:
        if self.table:
            self.spark.catalog.refreshTable(self.table)
            return self.spark.table(self.table)
        return self.spark.read.format(self.file_format).options(**self.options).load(str(self.path))

    def kept(self, where: str, read: Callable[[], DataFrame] | None = None) -> int:
        """Files that are read for a condition, having seen that the rows are those of skipping off.

        Raises:
            AssertionError: the rows differ, or a file with such a row is not read.
        """
        return self.seen(where, read)[0]

    def seen(
        self, where: str, read: Callable[[], DataFrame] | None = None
    ) -> tuple[int, list[str]]:
        """Files that are read, and the rows that came back: the same on and off."""
        query = read or self.read
        with skipping_by(self.spark, self.location):
            frame = query().where(where)
            files = len(read_files(frame))
            on = sorted(map(str, frame.collect()))
            with without_skipping(self.spark):
                off = sorted(map(str, query().where(where).collect()))
        if on != off:
            raise AssertionError(f"{where}: on {on}, off {off}")
        return files, on

    def outcome(self, where: str) -> RelationOutcome:
        with skipping_by(self.spark, self.location):
            decider_of(self.spark).counting.reset()
            read_files(self.read().where(where))
            return decider_of(self.spark).counting.read().recent[-1]
