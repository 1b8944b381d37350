"""The data source `flint`: indexes of OpenSearch as tables of Spark, read and written.

```python
register(spark)
spark.read.format("flint").options(host="search", port="-1", scheme="https").load("t001")
frame.write.format("flint").mode("append").save("t001")
```

A task reads one shard, as it was when the task began. `overwrite` deletes the index and makes it
anew, so it is not atomic. Spark knows no other modes of a Python data source.

Session settings `spark.datasource.flint.*` are defaults of the options. Workers of Python have no
session, so `register` takes the settings as they are then: register again after changing them.

Filters are pushed down where the session's `spark.sql.python.filterPushdown.enabled` is true. Spark
has one such setting for all Python data sources: where it is true each of them is asked for its
filters, in one more start of a Python worker while a query is planned; where it is not, Spark
refuses any that takes filters. `register` sets it unless the session sets false; enabling skipping
leaves it as it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession, datasource
from pyspark.sql.types import StructType

from snaploom.errors import IndexNotPossible, StatementInvalid
from snaploom.plugins.flint import values
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.documents import EVERYTHING, read_pages
from snaploom.plugins.flint.options import OpenSearchOptions, parse_options
from snaploom.plugins.flint.segments import Action, Write, write_all

NAME = "flint"
SETTINGS_PREFIX = "spark.datasource.flint."
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
"""Setting without which Spark refuses a Python data source that takes filters."""


class FlintDataSource(datasource.DataSource):
    """Spark makes one for each `load` and `save`, in a worker of Python."""

    settings: ClassVar[Mapping[str, str]] = {}
    """Defaults of the options, from the session."""
    is_pushed_down: ClassVar[bool] = False
    """Whether filters are taken; Spark must be set accordingly."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        index, options = self._parsed()
        with OpenSearchClient(options) as client:
            return values.schema_of(client.mapping(index).get("properties", {}))

    def reader(self, schema: StructType) -> FlintReader:
        kind = FilteringFlintReader if self.is_pushed_down else FlintReader
        return kind(*self._parsed(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> FlintWriter:
        index, options = self._parsed()
        writer = FlintWriter(index, options, schema)
        writer.prepare(overwrite)
        return writer

    def _parsed(self) -> tuple[str, OpenSearchOptions]:
        own = {name.lower(): value for name, value in self.options.items()}
        index = own.pop("path", "")
        if not index:
            raise StatementInvalid(
                "no index is named",
                expected='load("name of an index"), or save(...)',
                hint="give the name of an index to load() or save()",
            )
        return index, parse_options({**self.settings, **own})


@dataclass
class ShardPartition(datasource.InputPartition):
    """The shard that one task reads."""

    shard: int


class FlintReader(datasource.DataSourceReader):
    """Reads the shards of an index."""

    def __init__(self, index: str, options: OpenSearchOptions, schema: StructType) -> None:
        self._index = index
        self._options = options
        self._schema = schema
        self._arrow = values.arrow_schema_of(schema)
        self._query: values.Query = EVERYTHING

    def partitions(self) -> list[ShardPartition]:
        with OpenSearchClient(self._options) as client:
            return [ShardPartition(shard) for shard in range(client.shards(self._index))]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a shard, a page a batch."""
        if not isinstance(partition, ShardPartition):
            raise TypeError(f"not a partition of {NAME}: {type(partition).__name__}")
        fields = [name for name in self._schema.fieldNames() if name != values.DOCUMENT_ID]
        with OpenSearchClient(self._options) as client:
            pages = read_pages(client, self._index, self._query, fields, partition.shard)
            for page in pages:
                rows = [values.row_of(hit, self._schema) for hit in page]
                yield pa.RecordBatch.from_pylist(rows, self._arrow)


class FilteringFlintReader(FlintReader):
    """Reads rows that filters leave; Spark refuses it where push-down is not switched on."""

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:  # noqa: N802 - Spark names it
        """Search for possible matches; Spark evaluates every filter all the same."""
        with OpenSearchClient(self._options) as client:
            properties = client.mapping(self._index).get("properties", {})
        self._query = values.query_of(filters, self._schema, properties)
        return filters


class FlintWriter(datasource.DataSourceArrowWriter):
    """Writes rows as documents.

    Without `write.id_name` a document's id is made of the job's token, partition and row, so that
    a task that runs again writes the same documents again, not others beside them.
    """

    def __init__(self, index: str, options: OpenSearchOptions, schema: StructType) -> None:
        self._index = index
        self._options = options
        self._properties = values.mapping_of_schema(schema)
        self._job = secrets.token_hex(8)
        if options.id_name and options.id_name not in schema.fieldNames():
            raise IndexNotPossible(
                "write.id_name names no column",
                found=options.id_name,
                expected=", ".join(schema.fieldNames()),
                hint="name a column of what is written",
            )

    def prepare(self, overwrite: bool) -> None:
        """Make the index where there is none."""
        with OpenSearchClient(self._options) as client:
            if overwrite:
                client.delete_index(self._index)
            client.create_index(self._index, {"properties": self._properties})

    def write(self, iterator: Iterator[pa.RecordBatch]) -> datasource.WriterCommitMessage:
        context = TaskContext.get()
        task = f"{self._job}-{context.partitionId() if context is not None else 0}"
        with OpenSearchClient(self._options) as client:
            writes = self._writes(iterator, task)
            for _ in write_all(client, self._index, writes, self._options.refresh_policy):
                raise IndexNotPossible(
                    "a document of this job is there already",
                    found="a document with the same id",
                    expected="ids that no document has yet",
                    hint="write with other ids, or with the mode overwrite",
                )
        return datasource.WriterCommitMessage()

    def _writes(self, batches: Iterator[pa.RecordBatch], task: str) -> Iterator[Write]:
        number = 0
        for batch in batches:
            for row in batch.to_pylist():
                yield self._write(row, f"{task}-{number}")
                number += 1

    def _write(self, row: Mapping[str, Any], made_up: str) -> Write:
        document = {
            name: values.written(name, value) for name, value in row.items() if value is not None
        }
        name = self._options.id_name
        if not name:
            return Write(Action.INDEX, document, made_up)
        if document.get(name) is None:
            raise IndexNotPossible(
                "a row has no id",
                found=f"{name} is NULL",
                expected="a value in every row",
                hint="filter such rows out, or write without write.id_name",
            )
        document_id = str(document[name])
        if self._options.ignore_id_column:
            del document[name]
        return Write(Action.INDEX, document, document_id)


def register(spark: SparkSession) -> None:
    """Make `format("flint")` known to a session, with its `spark.datasource.flint.*` settings.

    Filters are pushed down from then on, in all Python data sources of the session, unless it sets
    `spark.sql.python.filterPushdown.enabled=false`.
    """
    if PUSH_DOWN not in spark.conf.getAll:
        spark.conf.set(PUSH_DOWN, "true")
    offer(spark)


def offer(spark: SparkSession) -> None:
    """As `register` does, without changing any setting of the session."""
    options = spark.conf.getAll
    settings = {
        name.removeprefix(SETTINGS_PREFIX): value
        for name, value in options.items()
        if name.startswith(SETTINGS_PREFIX)
    }
    # A class of its own for each session: it travels to workers by value, with the settings.
    is_pushed_down = spark.conf.get(PUSH_DOWN, "false") == "true"
    members = {"settings": settings, "is_pushed_down": is_pushed_down}
    spark.dataSource.register(type("FlintOfSession", (FlintDataSource,), members))
