"""Tables of Iceberg and Delta as sources, each at one version for the whole run.

The version is read once; all reads name it, so that what is committed meanwhile changes nothing,
and the fingerprint contains it. Snapshots of the source are declared as for files: by a column, or
by the time of reading. (Versions of a table have commit times, which need not be what time the data
are of.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from snaploom.confidential import visible
from snaploom.errors import SnaploomError, SourceNotReadable
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import FromFieldValue
from snaploom.output.icebergtable import MOVED
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.port import ReaderContext, SourceFrame, SourceReader, not_listed, of_all
from snaploom.sources.snapshotcolumn import RawValue, SnapshotColumn
from snaploom.sources.sourcefiles import Change, SourceFiles
from snaploom.sources.tables.declared import TableSource
from snaploom.sources.tables.iceberg import IcebergLibrary, is_unfit
from snaploom.sources.transformers import check_schema
from snaploom.spark.failures import translate
from snaploom.spark.jvm import has_class, jvm_of
from snaploom.spark.types import schema_of

_ICEBERG = "iceberg"
_CLASSES: Mapping[str, str] = {
    _ICEBERG: "org.apache.iceberg.spark.source.IcebergSource",
    "delta": "io.delta.tables.DeltaTable",
}
"""A class by which the library of a format is known."""
_LIBRARIES: Mapping[str, str] = {
    _ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-<Spark's version>_2.13",
    "delta": "io.delta:delta-spark_<Spark's version>_2.13, io.delta:delta-storage, and the "
    "settings spark.sql.extensions and spark.sql.catalog.spark_catalog",
}


def open_table(source: DeclaredSource, context: ReaderContext) -> SourceReader | None:
    """The reader of a source that is a table."""
    if not isinstance(source, TableSource):
        return None
    name, settings = source.source.name, source.declared.snapshot.from_field_value
    library = IcebergLibrary(context.spark)
    context.resources.callback(library.close)
    table = PinnedTable(library, source)
    if settings is None:
        return TableReader(name, table, context.now)
    return TableColumnReader(name, table, settings)


@dataclass(frozen=True)
class PinnedTable:
    """A table at the version that it had when it was first looked at."""

    library: IcebergLibrary
    source: TableSource

    @property
    def resource(self) -> str:
        return self.source.source.identity

    @property
    def spark(self) -> SparkSession:
        return self.library.session

    @cached_property
    def version(self) -> str | None:
        """The version: a snapshot's id (Iceberg) or a number (Delta); None before the first."""
        self._require_library()
        try:
            if self._format != _ICEBERG:
                return self._delta_version()
            newest = self._iceberg.currentSnapshot()
            return None if newest is None else str(newest.snapshotId())
        except (PySparkException, Py4JError) as error:
            raise self._failure(error) from error

    @cached_property
    def frame(self) -> DataFrame:
        """All rows of the version; there is one."""
        assert self.version is not None  # the caller looked
        try:
            if self._format == _ICEBERG:
                frame = self.library.frame(self._iceberg, int(self.version))
            else:
                reader = self.spark.read.format(self._format).option("versionAsOf", self.version)
                frame = reader.load(self.source.place)
            schema = schema_of(frame, self.resource, "spec.hdfsLike")
            check_schema(schema, self.resource, "spec.hdfsLike")
        except (PySparkException, Py4JError) as error:
            raise self._failure(error) from error
        return frame

    @property
    def fingerprint(self) -> str:
        return f"{self._format}:{self.version}"

    @property
    def remarks(self) -> tuple[str, ...]:
        return ()

    def change(self, now: SourceFiles) -> Change | None:
        """The version that the table has now, if changed; the version read is kept with it."""
        version = PinnedTable(self.library, self.source).version
        if version == self.version:
            return None
        found, expected = f"version {version}", f"version {self.version}"
        return Change(self.resource, self._path, found, expected, is_of_read=False)

    @property
    def _format(self) -> str:
        return self.source.format

    @property
    def _path(self) -> str:
        return f"spec.{self.source.place_field}"

    @cached_property
    def _iceberg(self) -> JavaObject:
        """Iceberg's table, as it was when it was first looked at."""
        named = self.source.declared.table
        if named is None:
            found = self.library.at(self.source.place.removesuffix("/"))
            if moved := found.properties().get(MOVED):
                raise self._not_readable(
                    "the table of an output has moved to a catalog, and is not written to any more",
                    self.source.place,
                    f"the table {visible(moved)}",
                    "name it in `table` of the source instead of the place",
                )
            return found
        try:
            found = self.library.of_catalog(str(named)).loaded()
        except SnaploomError as error:
            raise self._not_readable(error.message, error.found, error.expected, error.hint) from (
                error
            )
        if found is None:
            raise self._not_readable(
                f"the catalog {named.catalog} has no table of this name",
                str(named),
                "a table that the catalog lists",
                "check the name and the catalog's settings; an output's table is there once a run "
                "has published",
            )
        return found

    def _delta_version(self) -> str:
        tables = jvm_of(self.spark).io.delta.tables.DeltaTable
        history = tables.forPath(self.spark._jsparkSession, self.source.place).history(1)
        found = DataFrame(history, self.spark).select("version").first()
        assert found is not None  # a table has a first version
        return str(found[0])

    def _require_library(self) -> None:
        if has_class(self.spark, _CLASSES[self._format]):
            return
        called = self.source.called
        raise SourceNotReadable(
            f"Spark has no library for tables of {called}",
            resource=self.resource,
            path="spec.hdfsLike.format",
            found=f"Spark {self.spark.version} without {_CLASSES[self._format]}",
            expected=_LIBRARIES[self._format],
            hint="name the jars in run.spark.sparkConf, as spark.jars (files) or "
            "spark.jars.packages (coordinates), or put them into Spark's jars",
        )

    def _failure(self, error: PySparkException | Py4JError) -> SnaploomError:
        called, version = self.source.called, self.spark.version
        if self._format == _ICEBERG and is_unfit(error):
            return self._not_readable(
                f"the library of {called} is not made for this Spark",
                f"Spark {version}, and {translate(error).message}",
                f"{_LIBRARIES[_ICEBERG]}, or a Spark that the library is made for",
                "name the jar for this Spark in run.spark.sparkConf; until there is one, read the "
                "table with an older Spark",
            )
        found = translate(error, resource=self.resource, path=self._path)
        if isinstance(found, SourceNotReadable):
            return found
        return self._not_readable(
            f"the table of {called} cannot be read",
            found.message,
            f"a table of {called} at {self.source.place}",
            "check the place, and that format is that of the table",
        )

    def _not_readable(
        self, message: str, found: str | None, expected: str | None, hint: str
    ) -> SourceNotReadable:
        return SourceNotReadable(
            message,
            resource=self.resource,
            path=self._path,
            found=found,
            expected=expected,
            hint=hint,
        )


@dataclass(frozen=True)
class TableReader:
    """The whole version is one snapshot, at the instant of the run."""

    name: str
    table: PinnedTable
    now: EpochNanos

    def listing(self) -> SourceSnapshots:
        """The current snapshot; empty before the table's first version."""
        return SourceSnapshots() if self.table.version is None else READ_TIME

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        """All rows.

        Raises:
            SnapshotMissing: there is no version, or another time is asked for.
        """
        (snapshot,) = snapshots
        if self.table.version is None or snapshot != self.now:
            raise not_listed(self.name, snapshot)
        return SourceFrame(self.table.frame, snapshot, self.table.fingerprint, listed=self.table)


@dataclass(frozen=True)
class TableColumnReader:
    """A column of the table holds the snapshot of each row."""

    name: str
    table: PinnedTable
    settings: FromFieldValue

    def listing(self) -> SourceSnapshots:
        """The distinct instants of the column; one pass over it.

        Raises:
            SnapshotValueInvalid: a row has NULL, or a value that is not of its format.
        """
        return SourceSnapshots.of(self._values)

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        """The rows of snapshots.

        Raises:
            SnapshotMissing: there are none of one.
        """
        for snapshot in snapshots:
            if snapshot not in self._values:
                raise not_listed(self.name, snapshot)
        values = [value for snapshot in snapshots for value in self._values[snapshot]]
        frame = self._column.select(self.table.frame, values)
        dropped = self._column.field.parts if self.settings.drop_field else ()
        fingerprint, history = of_all(dict.fromkeys(snapshots, self.table.fingerprint))
        return SourceFrame(
            frame, snapshots[-1], fingerprint, dropped, listed=self.table, history=history
        )

    @cached_property
    def _column(self) -> SnapshotColumn:
        return SnapshotColumn.find(self.table.frame.schema, self.settings, self.table.resource)

    @cached_property
    def _values(self) -> Mapping[EpochNanos, tuple[RawValue, ...]]:
        return {} if self.table.version is None else self._column.values(self.table.frame)
