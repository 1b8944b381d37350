"""Versions of an Iceberg table, made by Iceberg's own library in Spark's JVM.

The files are there already, as Spark wrote them: they are taken into the table as they are, by
their names and footers. Their columns are found by name, listed in the table's name mapping, and
the partition column is not in them, but in what the table knows of each.

Nothing is committed here. A transaction of the library ends with the document that it would
commit, which `snaploom.storage.icebergtable` gives its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from snaploom.engine.icebergschema import iceberg_schema, renamed
from snaploom.engine.schemadocument import struct_from
from snaploom.errors import HistoryIncompatible, PublicationError
from snaploom.hadoop.jvm import jvm_of
from snaploom.storage.documentparser import corrupt
from snaploom.storage.entries import FileRecord
from snaploom.storage.icebergtable import TABLE, TableChange, is_below, version_key

RUNTIME = "iceberg-spark-runtime-4.1_2.13"
"""Iceberg's library, as its coordinates name the one for the oldest Spark that is supported."""
_NAME_MAPPING = "schema.name-mapping.default"


def require_iceberg(session: SparkSession, resource: str) -> None:
    """Refuse a session that does not have Iceberg's library.

    Raises:
        PublicationError: it does not.
    """
    if has_class(session, "org.apache.iceberg.hadoop.HadoopTables"):
        return
    raise PublicationError(
        "Iceberg is not on Spark's class path",
        resource=resource,
        path="spec.outputFolder.dataFormat",
        found=f"Spark {session.version} without org.apache.iceberg",
        expected=f"org.apache.iceberg:{RUNTIME}, or the one for another Spark",
        hint="name the jar in run.spark.sparkConf, as spark.jars (a file) or spark.jars.packages "
        "(coordinates), or put it into Spark's jars",
    )


def has_class(session: SparkSession, name: str) -> bool:
    """Whether Spark's JVM finds a class."""
    loader = jvm_of(session).java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(name)
    except Py4JJavaError:
        return False
    return True


@dataclass(frozen=True)
class IcebergLibrary:
    """`TableLibrary` by Iceberg's Java classes."""

    session: SparkSession
    """With Iceberg on its class path."""

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        """As `TableLibrary.created`."""
        iceberg = jvm_of(self.session).org.apache.iceberg
        columns = self._columns(struct_from(schema))
        spec = iceberg.PartitionSpec.builderFor(columns).identity(field_name).build()
        place = f"{folder}{TABLE}".removesuffix("/")
        none = self._map({})
        metadata = iceberg.TableMetadata.newTableMetadata(columns, spec, place, none)
        mapping = iceberg.mapping.MappingUtil.create(metadata.schema())
        mapping_json = iceberg.mapping.NameMappingParser.toJson(mapping)
        properties = self._map({_NAME_MAPPING: mapping_json})
        return self._document(metadata.replaceProperties(properties))

    def changed(self, folder: str, number: int, change: TableChange) -> bytes | None:
        """As `TableLibrary.changed`.

        Raises:
            HistoryIncompatible: the columns contradict those of the table.
            PublicationError: Iceberg refuses, in its words.
        """
        try:
            table = self._newest(folder, number)
            if table is None:
                return None
            transaction = table.newTransaction()
            if change.schema:
                self._evolve(transaction, struct_from(change.schema), change.field_name)
            self._change(transaction, folder, change)
            return self._document(transaction.currentMetadata())
        except Py4JError as error:
            raise PublicationError(
                "Iceberg could not make the next version of the table",
                found=_words(error),
                hint="nothing was published; 'SNAPLOOM_DEBUG=1' shows more",
            ) from error

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        """As `TableLibrary.lists`.

        Raises:
            PublicationError: Iceberg cannot read its lists, in its words.
        """
        try:
            table = self._newest(folder, number)
            if table is None:
                return None
            places: set[str] = set()
            for snapshot in table.snapshots():
                places.add(snapshot.manifestListLocation())
                places.update(one.path() for one in snapshot.allManifests(table.io()))
        except Py4JError as error:
            raise PublicationError(
                "Iceberg could not read which lists of files the table needs",
                found=_words(error),
                expected="a table that Iceberg reads",
                hint="run again; if it stays, check the files in metadata/ of the folder with "
                "'snaploom check'",
            ) from error
        return frozenset(place.rpartition("/")[2] for place in places)

    def _newest(self, folder: str, number: int) -> JavaObject | None:
        """The table as Iceberg sees it; None where a version is not its newest."""
        place = f"{folder}{TABLE}".removesuffix("/")
        tables = jvm_of(self.session).org.apache.iceberg.hadoop.HadoopTables(self._configuration())
        table = tables.load(place)
        newest = table.operations().current().metadataFileLocation()
        if not newest.endswith(f"/{version_key(number)}"):
            return None
        # The library opens what its lists name: those are read here, and nothing of what they name.
        current = table.currentSnapshot()
        for one in current.allManifests(table.io()) if current is not None else ():
            if not is_below(one.path(), f"{folder}{TABLE}"):
                raise corrupt(current.manifestListLocation(), f"the list of files {one.path()}")
        return table

    def _evolve(self, transaction: JavaObject, schema: spark.StructType, partition: str) -> None:
        """Give the table the columns that it lacks, and wider types where that is possible."""
        iceberg = jvm_of(self.session).org.apache.iceberg
        current = transaction.table().schema()
        clashes = renamed(schema, json.loads(iceberg.SchemaParser.toJson(current)))
        if clashes:
            raise _incompatible("columns have names that the table has in other letters", clashes)
        update = transaction.updateSchema().unionByNameWith(self._columns(schema))
        if current.columns().size() == 1 and len(schema.fields) > 1:
            last = [field.name for field in schema.fields if field.name != partition][-1]
            update = update.moveAfter(partition, last)
        try:
            update.commit()
        except Py4JJavaError as error:
            raise _incompatible("Iceberg cannot change columns like that", [_words(error)]) from (
                error
            )

    def _change(self, transaction: JavaObject, folder: str, change: TableChange) -> None:
        files = [
            self._file(transaction.table(), folder, value, file)
            for value, records in change.added.items()
            for file in records
        ]
        if not change.ended:
            operation = transaction.newAppend()
            for file in files:
                operation = operation.appendFile(file)
        else:
            expressions = jvm_of(self.session).org.apache.iceberg.expressions.Expressions
            operation = transaction.newOverwrite() if files else transaction.newDelete()
            column = transaction.table().schema().findType(change.field_name)
            for value in change.ended:
                is_text = str(column) == "string"
                rows = expressions.equal(change.field_name, value if is_text else int(value))
                operation = (
                    operation.overwriteByRowFilter(rows)
                    if files
                    else operation.deleteFromRowFilter(rows)
                )
            for file in files:
                operation = operation.addFile(file)
        for key, value in change.summary.items():
            operation = operation.set(key, value)
        operation.commit()

    def _file(self, table: JavaObject, folder: str, value: str, record: FileRecord) -> JavaObject:
        """A file that is there, as Iceberg knows files: with rows and bounds from its footer."""
        jvm = jvm_of(self.session)
        iceberg = jvm.org.apache.iceberg
        place = table.io().newInputFile(f"{folder}{record.path}")
        mapping = iceberg.mapping.NameMappingParser.fromJson(table.properties()[_NAME_MAPPING])
        kinds = iceberg.MetricsConfig.forTable(table)
        metrics = iceberg.parquet.ParquetUtil.fileMetrics(place, kinds, mapping)
        values = jvm.java.util.ArrayList()
        values.add(value)
        return (
            iceberg.DataFiles.builder(table.spec())
            .withPath(place.location())
            .withFormat("PARQUET")
            .withFileSizeInBytes(record.bytes)
            .withPartitionValues(values)
            .withMetrics(metrics)
            .build()
        )

    def _columns(self, schema: spark.StructType) -> JavaObject:
        parser = jvm_of(self.session).org.apache.iceberg.SchemaParser
        return parser.fromJson(json.dumps(iceberg_schema(schema)))

    def _document(self, metadata: JavaObject) -> bytes:
        parser = jvm_of(self.session).org.apache.iceberg.TableMetadataParser
        return str(parser.toJson(metadata)).encode()

    def _configuration(self) -> JavaObject:
        return self.session._jsparkSession.sessionState().newHadoopConf()

    def _map(self, values: Mapping[str, str]) -> JavaObject:
        made = jvm_of(self.session).java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made


def _incompatible(message: str, found: list[str]) -> HistoryIncompatible:
    return HistoryIncompatible(
        f"the snapshot does not fit the output's Iceberg table: {message}",
        found="; ".join(found),
        expected="columns with the names that they had, of the same type or a wider one",
        hint="shape the columns with a FieldTransformer, or publish to a new folder",
    )


def _words(error: Py4JError) -> str:
    message = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return str(message).splitlines()[0][:500]
