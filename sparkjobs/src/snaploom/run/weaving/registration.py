"""Published snapshots as partitions of a catalog table that any engine reads (`registerTable`).

The table is brought to the state of the manifest from any other: partitions of live snapshots are
added, those of ended ones dropped, and a table whose columns cannot hold the newest snapshots is
made anew, which costs no data, since it is external. So the next run adds what a failed run left
out.

A partition is a folder. Where a snapshot was restated or sorted, readers of the table see both
versions until `gc` has removed the old files, as all readers do that list folders (rule P20).
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.publishedfiles import READ_OPTIONS, SPARK_FORMATS
from snaploom.errors import PublicationError
from snaploom.models.outputdataset import OutputDataset, TimestampFormat
from snaploom.models.report import RegisteredTable, UnregisteredTable
from snaploom.output import history, icebergtable, layout
from snaploom.output.folder import Folder
from snaploom.output.state import FolderState, Version
from snaploom.plan.times import hive_of, partition_of
from snaploom.run.session.spark import translated
from snaploom.run.weaving.preparation import table_library
from snaploom.spark.jvm import jvm_of
from snaploom.spark.types import same_types, struct_from
from snaploom.types.schemas import quote

Member = TypeVar("Member")
_OWNER = "snaploom.folder"
"""Property of a table that names its owner: the folder's URI."""
_NOBODYS = "a table that Snaploom did not make"
_BATCH = 500
"""Partitions that one statement adds or drops: a metastore takes them in one transaction."""


class TableRegistration:
    """The catalog table of one output."""

    def __init__(self, spark: SparkSession, output: OutputDataset, folder: Folder) -> None:
        """Nothing is looked at yet; the output has a `registerTable`."""
        declared = output.spec.output_folder.register_table
        assert declared is not None
        self._spark = spark
        self._output = output
        self._folder = folder
        self._name = declared.name
        self._table = _quoted(declared.name)
        self._hive = hive_of(output.spec.output_folder)
        self._documents = history.SchemaDocuments(folder.store)

    @property
    def is_private(self) -> bool:
        """Whether the catalog is this process's own, so that nobody else sees the table."""
        kind = self._spark.conf.get("spark.sql.catalogImplementation")
        return self._name.count(".") < 2 and kind == "in-memory"

    def bring_up_to(self, state: FolderState) -> RegisteredTable:
        with translated(self._output.identity):
            versions = history.newest_side(state, self._documents)
            merged = history.merged_schema(state, self._documents, tuple(versions))
            self._make(struct_from(merged).toNullable())
            wanted = {version.partition: version for version in versions}
            known = {row[0] for row in self._sql(f"SHOW PARTITIONS {self._table}")}
            for some in _batches(sorted(known - wanted.keys())):
                listed = ", ".join(f"PARTITION ({self._described(name)})" for name in some)
                self._sql(f"ALTER TABLE {self._table} DROP IF EXISTS {listed}")
            self._add([wanted[name] for name in sorted(wanted.keys() - known)])
        return RegisteredTable(name=self._name, partitions=len(wanted), sequence=state.seq)

    def _make(self, schema: StructType) -> None:
        if self._spark.catalog.tableExists(self._table):
            self._refuse_others()
            found = self._spark.table(self._table).drop(self._hive.field_name).schema
            if same_types(found, schema):
                return
            # No engine changes the type of a column inside a struct; files stay where they are.
            self._sql(f"DROP TABLE {self._table}")
        data_format = self._output.spec.output_folder.data_format
        options = ", ".join(
            f"{_text(name)} = {_text(value)}" for name, value in READ_OPTIONS[data_format].items()
        )
        is_text = self._hive.timestamp_format is TimestampFormat.ISO8601_DATE_TIME
        kind = "STRING" if is_text else "BIGINT"
        field = quote(self._hive.field_name)
        uri = self._folder.store.uri
        self._sql(
            f"CREATE TABLE {self._table} ({self._ddl(schema)}, {field} {kind}) "
            f"USING {SPARK_FORMATS[data_format]} {f'OPTIONS ({options}) ' if options else ''}"
            f"PARTITIONED BY ({field}) LOCATION {_text(uri + layout.DATA)} "
            f"TBLPROPERTIES ({_text(_OWNER)} = {_text(uri)})"
        )

    def _refuse_others(self) -> None:
        owner = _owner(self._spark, self._table)
        if owner == self._folder.store.uri:
            return
        raise PublicationError(
            f"the table {self._name} was not made for this output, and is left as it is",
            resource=self._output.identity,
            path="spec.outputFolder.registerTable.name",
            found=owner or _NOBODYS,
            expected="no table of this name, or the one of this folder",
        )

    def _add(self, versions: Sequence[Version]) -> None:
        for some in _batches(versions):
            listed = " ".join(self._located(version) for version in some)
            self._sql(f"ALTER TABLE {self._table} ADD IF NOT EXISTS {listed}")

    def _located(self, version: Version) -> str:
        value = partition_of(self._hive, version.time).value
        place = f"{self._folder.store.uri}{layout.partition_prefix(version.partition)}"
        return (
            f"PARTITION ({quote(self._hive.field_name)} = {_text(value)}) LOCATION {_text(place)}"
        )

    def _described(self, partition: str) -> str:
        unescape = jvm_of(self._spark).org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        name, _, value = partition.partition("=")
        return f"{quote(name)} = {_text(unescape.unescapePathName(value))}"

    def _ddl(self, schema: StructType) -> str:
        types = jvm_of(self._spark).org.apache.spark.sql.types
        return str(types.DataType.fromJson(schema.json()).toDDL())

    def _sql(self, statement: str) -> list[Row]:
        return self._spark.sql(statement).collect()


def drop_table(spark: SparkSession, output: OutputDataset, uri: str) -> UnregisteredTable | None:
    """Take the table of an output, if any, out of the catalog, where it is ours; its files stay."""
    if output.spec.output_folder.table is not None:
        return _drop_of_catalog(spark, output, uri)
    declared = output.spec.output_folder.register_table
    if declared is None:
        return None
    table = _quoted(declared.name)
    with translated(output.identity):
        if not spark.catalog.tableExists(table):
            return UnregisteredTable(name=declared.name)
        owner = _owner(spark, table)
        if owner != uri:
            return UnregisteredTable(name=declared.name, left=owner or _NOBODYS)
        spark.sql(f"DROP TABLE {table}")
    return UnregisteredTable(name=declared.name, is_dropped=True)


def _drop_of_catalog(spark: SparkSession, output: OutputDataset, uri: str) -> UnregisteredTable:
    name = str(output.spec.output_folder.table)
    library = table_library(spark, output)
    assert library is not None  # only an Iceberg output has one
    table = library.of_catalog(name)
    version = table.read()
    if version is None:
        return UnregisteredTable(name=name)
    owner = version.properties.get(icebergtable.OWNER, "")
    if owner != uri:
        return UnregisteredTable(name=name, left=owner or _NOBODYS)
    table.drop()
    return UnregisteredTable(name=name, is_dropped=True)


def _owner(spark: SparkSession, table: str) -> str:
    listed = spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
    return next((str(row[1]) for row in listed if row[0] == _OWNER), "")


def _quoted(name: str) -> str:
    return ".".join(quote(part) for part in name.split("."))


def _batches(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    for start in range(0, len(members), _BATCH):
        yield members[start : start + _BATCH]


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
