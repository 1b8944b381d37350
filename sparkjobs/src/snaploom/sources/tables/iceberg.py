"""Versions of Iceberg tables, made and read by Iceberg's own library."""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from snaploom.confidential import remember_secret, without_secrets
from snaploom.errors import HistoryIncompatible, PublicationError
from snaploom.output import icebergtable, layout
from snaploom.output.documents import corrupt
from snaploom.output.entries import FileRecord
from snaploom.output.manifest import CommitContended, CommitOutcomeUnknown
from snaploom.sources.tables.columns import iceberg_schema, renamed
from snaploom.spark.failures import answered
from snaploom.spark.jvm import client_of, has_class, jvm_of
from snaploom.spark.types import struct_from

# Versions of an Iceberg table, made by Iceberg's own library in Spark's JVM.

RUNTIME = "iceberg-spark-runtime-4.1_2.13"
"""Iceberg's library, as its coordinates name the one for the oldest Spark that is supported."""
_NAME_MAPPING = "schema.name-mapping.default"


def require_iceberg(session: SparkSession, resource: str) -> None:
    """Refuse a session that does not have Iceberg's library."""
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


@dataclass(frozen=True)
class IcebergLibrary:
    """`TableLibrary` by Iceberg's Java classes."""

    session: SparkSession
    """With Iceberg on its class path."""
    _catalogs: dict[str, JavaObject] = field(default_factory=dict, compare=False, repr=False)

    def of_catalog(self, name: str) -> "JavaCatalogTable":
        catalog, _, table = name.partition(".")
        if catalog not in self._catalogs:
            self._catalogs[catalog] = self._open(catalog)
        return JavaCatalogTable(self, self._catalogs[catalog], catalog, table)

    def at(self, place: str) -> JavaObject:
        """The table of Iceberg's Hadoop kind at a place; a `Py4JError` if it cannot be loaded."""
        conf = client_of(self.session).configuration()
        return jvm_of(self.session).org.apache.iceberg.hadoop.HadoopTables(conf).load(place)

    def frame(self, table: JavaObject, snapshot: int) -> DataFrame:
        """All rows of a snapshot of a table, read by the table's own client of its files.

        Raises:
            Py4JError: they cannot be read; `is_unfit` distinguishes a library for another Spark.
        """
        utilities = jvm_of(self.session).org.apache.iceberg.spark.SparkTableUtil
        loaded = utilities.loadTable(self.session._jsparkSession, table, snapshot)
        return DataFrame(loaded, self.session)

    def close(self) -> None:
        """Release the connections to catalogs."""
        for catalog in self._catalogs.values():
            # Not every catalog has any.
            with suppress(Py4JError):
                catalog.close()
        self._catalogs.clear()

    def _open(self, name: str) -> JavaObject:
        prefix = f"{CATALOG}{name}."
        settings = {
            key.removeprefix(prefix): _resolved(key, value)
            for key, value in self.session.conf.getAll.items()
            if key.startswith(prefix)
        }
        if settings.keys().isdisjoint({"type", "catalog-impl"}):
            raise PublicationError(
                f"Spark's settings have no catalog of Iceberg with the name {name}",
                path="spec.outputFolder.table.catalog",
                found=", ".join(sorted(f"{prefix}{key}" for key in settings)) or "no such setting",
                expected=f"{prefix}type (such as rest or jdbc), {prefix}uri and what it needs",
                hint="give them in run.spark.sparkConf, or for all outputs in the chart's "
                "spark.application.sparkConf",
            )
        conf = client_of(self.session).configuration()
        catalogs = jvm_of(self.session).org.apache.iceberg.CatalogUtil
        with _served(name):
            return catalogs.buildIcebergCatalog(name, self.map(settings), conf)

    def created(self, folder: str, schema: str, field_name: str) -> bytes:
        return self.document(self.begun(folder, schema, field_name, {}))

    def begun(
        self, folder: str, schema: str, field_name: str, properties: Mapping[str, str]
    ) -> JavaObject:
        """Metadata of a table without rows."""
        iceberg = jvm_of(self.session).org.apache.iceberg
        columns = self.columns(struct_from(schema))
        spec = iceberg.PartitionSpec.builderFor(columns).identity(field_name).build()
        place = f"{folder}{icebergtable.TABLE}".removesuffix("/")
        metadata = iceberg.TableMetadata.newTableMetadata(columns, spec, place, self.map({}))
        mapping = iceberg.mapping.MappingUtil.create(metadata.schema())
        mapping_json = iceberg.mapping.NameMappingParser.toJson(mapping)
        return metadata.replaceProperties(self.map({**properties, _NAME_MAPPING: mapping_json}))

    def changed(self, folder: str, number: int, change: icebergtable.TableChange) -> bytes | None:
        """As `TableLibrary.changed`.

        Raises:
            HistoryIncompatible: the columns contradict those of the table.
        """
        try:
            table = self._newest(folder, number)
            if table is None:
                return None
            transaction = table.newTransaction()
            self.change(transaction, folder, change)
            return self.document(transaction.currentMetadata())
        except Py4JError as error:
            raise _not_made(error) from error

    def lists(self, folder: str, number: int) -> frozenset[str] | None:
        try:
            table = self._newest(folder, number)
            return None if table is None else lists_of(table)
        except Py4JError as error:
            raise PublicationError(
                "Iceberg could not read which lists of files the table needs",
                found=_words(error),
                expected="a table that Iceberg reads",
                hint="run again; if it stays, check the files in metadata/ of the folder with "
                "'snaploom check'",
            ) from error

    def _newest(self, folder: str, number: int) -> JavaObject | None:
        """The table as Iceberg sees it; None where a version is not its newest."""
        table = self.at(f"{folder}{icebergtable.TABLE}".removesuffix("/"))
        newest = table.operations().current().metadataFileLocation()
        if not newest.endswith(f"/{icebergtable.version_key(number)}"):
            return None
        # The library opens what its lists name: those are read here, and nothing of what they name.
        current = table.currentSnapshot()
        for one in current.allManifests(table.io()) if current is not None else ():
            if not icebergtable.is_below(one.path(), f"{folder}{icebergtable.TABLE}"):
                raise corrupt(current.manifestListLocation(), f"the list of files {one.path()}")
        return table

    def _evolve(self, transaction: JavaObject, schema: spark.StructType, partition: str) -> None:
        """Give the table the columns that it lacks, and wider types where that is possible."""
        iceberg = jvm_of(self.session).org.apache.iceberg
        current = transaction.table().schema()
        clashes = renamed(schema, json.loads(iceberg.SchemaParser.toJson(current)))
        if clashes:
            raise _incompatible("columns have names that the table has in other letters", clashes)
        update = transaction.updateSchema().unionByNameWith(self.columns(schema))
        if current.columns().size() == 1 and len(schema.fields) > 1:
            last = [field.name for field in schema.fields if field.name != partition][-1]
            update = update.moveAfter(partition, last)
        try:
            update.commit()
        except Py4JJavaError as error:
            raise _incompatible("Iceberg cannot change columns like that", [_words(error)]) from (
                error
            )

    def change(
        self, transaction: JavaObject, folder: str, change: icebergtable.TableChange
    ) -> None:
        """Make a change in a transaction that is not committed."""
        if change.schema:
            self._evolve(transaction, struct_from(change.schema), change.field_name)
        if change.properties:
            update = transaction.updateProperties()
            for key, value in change.properties.items():
                update = update.set(key, value)
            update.commit()
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

    def columns(self, schema: spark.StructType) -> JavaObject:
        """The columns as Iceberg has them."""
        parser = jvm_of(self.session).org.apache.iceberg.SchemaParser
        return parser.fromJson(json.dumps(iceberg_schema(schema)))

    def document(self, metadata: JavaObject) -> bytes:
        parser = jvm_of(self.session).org.apache.iceberg.TableMetadataParser
        return str(parser.toJson(metadata)).encode()

    def map(self, values: Mapping[str, str]) -> JavaObject:
        made = jvm_of(self.session).java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made


CATALOG = "spark.sql.catalog."
"""Start of the names of settings of catalogs."""
_VARIABLE = "env:"
"""Start of values that are in a variable of the environment, as Iceberg's REST client has them."""


def _resolved(key: str, value: str) -> str:
    """The value of a setting, which may be in the environment; a secret is shown nowhere."""
    if not value.startswith(_VARIABLE):
        return value
    name = value.removeprefix(_VARIABLE)
    if name not in os.environ:
        raise PublicationError(
            f"the setting {key} names a variable that the environment does not have",
            path="spec.outputFolder.table.catalog",
            found=value,
            expected=f"the variable {name}",
            hint="give it to the run: in a cluster by run.spark.driver.env, from a Secret",
        )
    remember_secret(os.environ[name])
    return os.environ[name]


@dataclass(frozen=True)
class JavaCatalogTable:
    """`CatalogTable` by Iceberg's Java classes: of REST, JDBC and what else they load."""

    library: IcebergLibrary
    catalog: JavaObject = field(repr=False)
    catalog_name: str
    table_name: str

    @property
    def name(self) -> str:
        return f"{self.catalog_name}.{self.table_name}"

    @property
    def _identifier(self) -> JavaObject:
        catalogs = jvm_of(self.library.session).org.apache.iceberg.catalog
        return catalogs.TableIdentifier.parse(self.table_name)

    def read(self) -> icebergtable.TableVersion | None:
        table = self.loaded()
        if table is None:
            return None
        with _served(self.name):
            metadata = table.operations().current()
            return icebergtable.TableVersion(0, json.loads(self.library.document(metadata)))

    def loaded(self) -> JavaObject | None:
        """Iceberg's table as it is now; None where there is none. Raises `CatalogFailed`."""
        try:
            return self._load()
        except _FAILURES as error:
            if _is(error, "NoSuchTableException", "NoSuchNamespaceException"):
                return None
            raise _catalog_failed(self.name, error) from error

    def create(
        self, folder: str, schema: str, field_name: str, properties: Mapping[str, str]
    ) -> None:
        with self._entered() as identifier:
            metadata = self.library.begun(folder, schema, field_name, properties)
            builder = self.catalog.buildTable(identifier, metadata.schema())
            builder = builder.withPartitionSpec(metadata.spec()).withLocation(metadata.location())
            builder.withProperties(metadata.properties()).create()

    def register(self, place: str) -> None:
        with self._entered() as identifier:
            self.catalog.registerTable(identifier, place)

    @contextmanager
    def _entered(self) -> Iterator[JavaObject]:
        """The name under which a block makes the table; that another one made it is no failure."""
        try:
            self._ensure_namespace(self._identifier.namespace())
            yield self._identifier
        except Py4JError as error:
            if not _is(error, "AlreadyExistsException"):
                raise _catalog_failed(self.name, error) from error
            # Hive's claims it as well when it got no lock, after minutes.
            if self.loaded() is None:
                fault = "claims that the table is there, and has none"
                raise _catalog_failed(self.name, error, fault) from error

    def _ensure_namespace(self, namespace: JavaObject) -> None:
        if self.catalog.namespaceExists(namespace):
            return
        try:
            self.catalog.createNamespace(namespace)
        except Py4JError as error:
            # Another output's first run may have been faster.
            if not _is(error, "AlreadyExistsException"):
                raise

    def commit(
        self, folder: str, base: icebergtable.TableVersion, change: icebergtable.TableChange
    ) -> bool:
        """As `CatalogTable.commit`: the catalog compares the branch or the whole table itself."""
        try:
            table = self._load()
            transaction = table.newTransaction()
            start = transaction.startMetadata()
            newest = start.currentSnapshot()
            if (None if newest is None else newest.snapshotId()) != base.newest:
                return False
            self.library.change(transaction, folder, change)
            made = transaction.currentMetadata()
        except Py4JError as error:
            raise _not_made(error) from error
        # Not by the transaction, which would make the change once more on top of others' commits.
        return self._put(table, start, made)

    def forget(self, snapshots: Collection[int]) -> None:
        jvm = jvm_of(self.library.session)
        numbers = jvm.java.util.HashSet()
        for number in snapshots:
            numbers.add(jvm.java.lang.Long.valueOf(str(number)))
        try:
            table = self._load()
            start = table.operations().current()
            if not {one.snapshotId() for one in start.refs().values()}.isdisjoint(snapshots):
                raise self._changed_meanwhile()
            made = jvm.org.apache.iceberg.TableMetadata.buildFrom(start)
            made = made.removeSnapshots(numbers).build()
        except Py4JError as error:
            raise _not_made(error) from error
        if not self._put(table, start, made):
            raise self._changed_meanwhile()

    def _changed_meanwhile(self) -> CommitContended:
        return CommitContended(
            f"the table {self.name} was changed meanwhile",
            found="a lost race",
            hint="the next run tries again",
        )

    def lists(self) -> frozenset[str]:
        with _served(self.name):
            return lists_of(self._load())

    def showing(self, files: Collection[str]) -> Mapping[int, frozenset[str]]:
        """As `CatalogTable.showing`, by name: names of files have the run, and are given once."""
        wanted = {key.rpartition("/")[2]: key for key in files}
        found: dict[str, frozenset[str]] = {}
        shown: dict[int, frozenset[str]] = {}
        with _served(self.name):
            table = self._load()
            evaluators = self._evaluators(table, {layout.partition_of(key) for key in files})
            for snapshot in table.snapshots():
                for manifest in snapshot.dataManifests(table.io()):
                    path = manifest.path()
                    if path not in found:
                        is_near = evaluators[manifest.partitionSpecId()].eval(manifest)
                        names = self._names_in(table, manifest) if is_near else ()
                        found[path] = frozenset(wanted[name] for name in names if name in wanted)
                    if found[path]:
                        number = snapshot.snapshotId()
                        shown[number] = shown.get(number, frozenset()) | found[path]
        return shown

    def _evaluators(self, table: JavaObject, partitions: Collection[str]) -> dict[int, JavaObject]:
        """Judges of whether a list of files may have some partitions, by its partitioning."""
        iceberg = jvm_of(self.library.session).org.apache.iceberg
        expressions = iceberg.expressions.Expressions
        chosen = expressions.alwaysFalse()
        for partition in partitions:
            name, _, value = partition.partition("=")
            is_number = str(table.schema().findType(name)) == "long"
            one = expressions.equal(name, int(value) if is_number else unquote(value))
            chosen = getattr(expressions, "or")(chosen, one)
        made = iceberg.expressions.ManifestEvaluator.forRowFilter
        return {number: made(chosen, spec, True) for number, spec in table.specs().items()}

    def _names_in(self, table: JavaObject, manifest: JavaObject) -> Iterator[str]:
        """Names of the data files in a list of files, without those that it records as removed."""
        lists = jvm_of(self.library.session).org.apache.iceberg.ManifestFiles
        paths = lists.readPaths(manifest, table.io(), table.specs())
        try:
            yield from (str(path).rpartition("/")[2] for path in paths.iterator())
        finally:
            paths.close()

    def rows(self, field_name: str) -> Mapping[str, int]:
        with _served(self.name):
            table = self._load()
            newest = table.currentSnapshot()
            if newest is None:
                return {}
            frame = self.library.frame(table, newest.snapshotId())
            counted = frame.groupBy(frame[field_name].cast("string")).count().collect()
        return {str(row[0]): row[1] for row in counted}

    def drop(self) -> None:
        with _served(self.name):
            self.catalog.dropTable(self._identifier, False)

    def _load(self) -> JavaObject:
        return self.catalog.loadTable(self._identifier)

    def _put(self, table: JavaObject, start: JavaObject, made: JavaObject) -> bool:
        try:
            table.operations().commit(start, made)
        except Py4JError as error:
            if _is(error, "CommitFailedException"):
                # Iceberg has waited long for a lock of Hive's, and committed nothing.
                if "hive.LockException" in _words(error):
                    raise _catalog_failed(self.name, error) from error
                return False
            if "incompatible with the existing columns" in _words(error):
                setting = "hive.metastore.disallow.incompatible.col.type.changes"
                fault = (
                    f"Hive's metastore keeps types in their places, unless its {setting} is false"
                )
                raise _incompatible(fault, [_words(error)]) from error
            raise CommitOutcomeUnknown(
                f"nothing shows whether the table {self.name} has the commit",
                found=_words(error),
            ) from error
        return True


_FAILURES = (Py4JError, PySparkException)
"""Failures of a call into Iceberg: PySpark knows some exceptions of Java as its own."""
_UNFIT = frozenset(
    f"java.lang.{name}"
    for name in (
        "AbstractMethodError",
        "ClassNotFoundException",
        "IllegalAccessError",
        "IncompatibleClassChangeError",
        "NoClassDefFoundError",
        "NoSuchFieldError",
        "NoSuchMethodError",
        "VerifyError",
    )
)


def lists_of(table: JavaObject) -> frozenset[str]:
    """Names of the lists of files that a table needs."""
    places: set[str] = set()
    for snapshot in table.snapshots():
        places.add(snapshot.manifestListLocation())
        places.update(one.path() for one in snapshot.allManifests(table.io()))
    return frozenset(place.rpartition("/")[2] for place in places)


def is_unfit(error: Exception) -> bool:
    """Whether the library is for another Spark: classes or methods that it needs are not there."""
    if not isinstance(error, Py4JJavaError):
        return type(error) is Py4JError  # there is no such method
    raised = error.java_exception
    while raised is not None:
        if str(raised.getClass().getName()) in _UNFIT:
            return True
        raised = raised.getCause()
    return False


def _is(error: Exception, *names: str) -> bool:
    """Whether Java raised one of these exceptions of Iceberg."""
    if not isinstance(error, Py4JJavaError):
        return False
    raised = str(error.java_exception.getClass().getName())
    return raised.rpartition(".")[2] in names


@contextmanager
def _served(name: str) -> Iterator[None]:
    """Raise failures of calls into Iceberg as those of the catalog of a table."""
    try:
        yield
    except _FAILURES as error:
        raise _catalog_failed(name, error) from error


def _catalog_failed(
    name: str, error: Exception, fault: str = "does not serve the table"
) -> icebergtable.CatalogFailed:
    return icebergtable.CatalogFailed(
        f"the catalog of {name} {fault}",
        path="spec.outputFolder.table",
        found=_words(error),
        expected="a catalog that answers, and lets the run read and change the table",
        hint="check the settings spark.sql.catalog.*, the catalog's server and what it allows; "
        "Hive's must give locks, and end those of dead clients",
    )


def _not_made(error: Py4JError) -> PublicationError:
    return PublicationError(
        "Iceberg could not make the next version of the table",
        found=_words(error),
        hint="nothing was published; 'SNAPLOOM_DEBUG=1' shows more",
    )


def _incompatible(message: str, found: list[str]) -> HistoryIncompatible:
    return HistoryIncompatible(
        f"the snapshot does not fit the output's Iceberg table: {message}",
        found="; ".join(found),
        expected="columns with the names that they had, of the same type or a wider one",
        hint="shape the columns with a FieldTransformer, or publish to a new folder",
    )


def _words(error: Exception) -> str:
    message = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return without_secrets(answered(str(message)).splitlines()[0])[:500]
