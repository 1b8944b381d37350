"""Sorts files into a new folder: same rows, clustered, invisible before they are verified.

The rows are written into a hidden folder beside the new one, read back, compared with what was
read (count, and a checksum that no order changes), and moved into place as the last thing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from snaploom.errors import IndexNotPossible, SortNotPossible
from snaploom.output import layout
from snaploom.skipping.advice.orders import Checksum, Curve, Rewritten, SortRequest, SortResult
from snaploom.skipping.core.terms import Term
from snaploom.skipping.spark.builds.clusteredwrite import (
    MOST_COLUMNS,
    Clustering,
    balanced,
    clustered,
)
from snaploom.skipping.spark.builds.scan import Relation
from snaploom.skipping.spark.relations.expressions import columns_of
from snaploom.skipping.spark.relations.janino import cause_of
from snaploom.skipping.spark.targets.sparktarget import SparkTarget, column_at, column_named
from snaploom.spark.jvm import jvm_of, qualified_uri

_NOT_COMPARED = (spark_types.MapType, spark_types.VariantType)
"""Types that Spark cannot hash; their JSON is hashed."""

_ABOUT_THE_OLD_FILES = frozenset({
    "path", "paths", "basepath", "pathglobfilter", "recursivefilelookup", "modifiedbefore",
    "modifiedafter",
})  # fmt: skip
"""Options that decide where files are and which are read; others what is in them."""


def sort_into(target: SparkTarget, folder: str, request: SortRequest) -> SortResult:
    """Write the rows of a target, clustered, as a new folder of the same format and partitions.

    Raises:
        SortNotPossible: the folder is not empty, or lies in what is read; one of both is published
            by Snaploom; or the format does not give back what was written. Nothing is left behind.
        IndexNotPossible: a column cannot be sorted by.
    """
    session = target.relation(()).spark
    places = _Places(session, qualified_uri(session, folder))
    places.refuse_published(target.target.uri)
    places.refuse_published(places.uri)
    places.refuse_inside(target.target.uri)
    places.refuse_used()
    with places.staging() as staged:
        result = rewrite(target, staged, request)
        places.refuse_used()
        places.move(staged)
    return SortResult(places.uri, result)


def rewrite(target: SparkTarget, folder: str, request: SortRequest) -> Rewritten:
    """Write the rows of a target, clustered, and verify that none is missing.

    Raises:
        SortNotPossible: the rows read back differ from the source.
    """
    clustering = clustering_of(target, request)
    listed = target.list_files("")
    relation = target.relation(clustering.terms)
    size = sum(listed.column("length").to_pylist())
    partition_names = [name for name, _ in target.partition_columns]
    before = checksum(relation.frame)
    frame = clustered(
        relation,
        clustering,
        balanced(size, request.target_file_size),
        before.rows,
        partition_names,
        request.seed,
    )
    options = {
        name: value
        for name, value in target.target.options
        if name.lower() not in _ABOUT_THE_OLD_FILES
    }
    _write(frame, folder, target.target.format, options, partition_names)
    written = (
        relation.spark.read.format(target.target.format)
        .schema(relation.frame.schema)
        .options(**options)
        .load(folder)
    )
    after = checksum(written)
    if after != before:
        raise SortNotPossible(
            f"{target.target.format} does not give back what was written",
            found=str(after),
            expected=str(before),
            hint="the files that were read are as they were; name the reader's options if the "
            "files need some, or convert them to Parquet first",
        )
    sizes = _sizes(relation.spark, written.inputFiles())
    return Rewritten(before, listed.num_rows, len(sizes), size, sum(sizes))


def clustering_of(target: SparkTarget, request: SortRequest) -> Clustering:
    """The columns of a request, resolved.

    Raises:
        IndexNotPossible: one of them is not there, comes twice, is a partition column, or has a
            type without an order.
    """
    partitions = {name for name, _ in target.partition_columns}
    terms = tuple(target.column(name) for name in request.columns)
    for term in terms:
        if term.names is not None and term.names[0] in partitions:
            raise IndexNotPossible(
                f"files lie in folders by {term.label} already",
                found=term.label,
                expected="columns inside the files",
                hint="leave it out: rows of one folder stay together",
            )
    return _clustering(terms, request)


def clustering_under(
    session: SparkSession, schema: spark_types.StructType, request: SortRequest
) -> Clustering:
    """The columns of a request, resolved among those of a schema.

    Raises:
        IndexNotPossible: one of them is not there, comes twice, or has a type without an order.
    """
    columns = columns_of(json.loads(schema.json()), {})
    terms = tuple(column_named(columns, session, name) for name in request.columns)
    return _clustering(terms, request)


def sorted_frame(
    frame: DataFrame, clustering: Clustering, request: SortRequest, size: int, rows: int
) -> DataFrame:
    """Rows of a frame of one folder in an order, one Spark partition for each new file."""
    computed = {term.key: column_at(term.names or ()) for term in clustering.terms}
    relation = Relation(frame.sparkSession, lambda: frame, computed)
    files = balanced(size, request.target_file_size)
    return clustered(relation, clustering, files, rows, (), request.seed)


def _clustering(terms: tuple[Term, ...], request: SortRequest) -> Clustering:
    if not 0 < len(set(terms)) == len(terms) <= MOST_COLUMNS:
        raise IndexNotPossible(
            "rows cannot be sorted by these columns",
            found=", ".join(request.columns) or "none",
            expected=f"one to {MOST_COLUMNS} columns, each once",
            hint="choose other columns to sort by",
        )
    return Clustering(Curve.LINEAR if len(terms) == 1 else request.curve, terms)


def checksum(frame: DataFrame) -> Checksum:
    """A checksum of rows that their order does not change; all columns and NULLs count."""
    columns = [_comparable(frame, field) for field in frame.schema.fields]
    # A hash leaves NULL out, so that (1, NULL) would be (NULL, 1).
    absent = [column.isNull() for column in columns]
    hashed = sql.xxhash64(*columns, *absent)
    row = frame.agg(
        sql.count(sql.lit(1)),
        sql.sum(hashed.cast("decimal(20,0)")),
        sql.bit_xor(sql.xxhash64(hashed, *reversed(columns))),
    ).first()
    count, total, mixed = row if row is not None else (0, None, None)
    return Checksum(int(count), int(total or 0), int(mixed or 0))


def _comparable(frame: DataFrame, field: spark_types.StructField) -> Column:
    column = frame[f"`{field.name.replace('`', '``')}`"]
    if _holds_unhashable(field.dataType):
        return sql.to_json(sql.struct(column.alias("value")))
    return column


def _holds_unhashable(kind: spark_types.DataType) -> bool:
    match kind:
        case spark_types.StructType():
            return any(_holds_unhashable(field.dataType) for field in kind.fields)
        case spark_types.ArrayType():
            return _holds_unhashable(kind.elementType)
    return isinstance(kind, _NOT_COMPARED)


def _write(
    frame: DataFrame,
    folder: str,
    file_format: str,
    options: Mapping[str, str],
    partition_names: Sequence[str],
) -> None:
    settings = {**options, "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    try:
        writer = frame.write.format(file_format).options(**settings).mode("error")
        writer.partitionBy(*partition_names).save(folder)
    except PySparkException as error:
        raise SortNotPossible(
            f"the rows cannot be written as {file_format}",
            found=cause_of(error),
            expected="columns that the format holds",
            hint="read the files as another format, or leave them as they are",
        ) from error


class _Places:
    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri
        self._jvm = jvm_of(spark)
        self._gateway = spark.sparkContext._gateway
        self._path = self._jvm.org.apache.hadoop.fs.Path(uri)
        configuration = self._configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._path.getFileSystem(configuration)
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._path.toUri(), configuration
        )

    def refuse_published(self, uri: str) -> None:
        """Refuse a published folder: its manifest decides which files count, not Spark."""
        place = self._jvm.org.apache.hadoop.fs.Path(uri)
        files = place.getFileSystem(self._configuration)
        while place is not None:
            if files.exists(self._child(place, layout.MARKER)):
                raise SortNotPossible(
                    "published snapshots are sorted where they are, not into a new folder",
                    found=f"{uri}, which belongs to {place.toString()}",
                    expected="two folders that Snaploom does not publish into",
                    hint="leave the new folder out to replace the snapshots by sorted ones; or "
                    "write what snaploom.read gives to a folder of its own, and sort that",
                )
            place = place.getParent()

    def refuse_inside(self, source: str) -> None:
        one, other = f"{self.uri.rstrip('/')}/", f"{source.rstrip('/')}/"
        if one.startswith(other) or other.startswith(one):
            raise SortNotPossible(
                "the new folder must lie apart from what is read",
                found=self.uri,
                expected=f"a folder that neither is in {source} nor holds it",
                hint="files that Snaploom did not publish are never rewritten in place",
            )

    def refuse_used(self) -> None:
        if self._files.exists(self._path) and (
            not self._files.getFileStatus(self._path).isDirectory()
            or len(self._files.listStatus(self._path))
        ):
            raise SortNotPossible(
                "the new folder is not empty",
                found=self.uri,
                expected="a folder that is absent or empty",
                hint="name another folder; nothing in it was touched",
            )

    @contextmanager
    def staging(self) -> Iterator[str]:
        """A path inside a hidden folder beside the new one, which is removed in the end."""
        hidden = self._child(self._path.getParent(), f".snaploom-sort-{secrets.token_hex(6)}")
        try:
            yield str(self._child(hidden, "rows").toString())
        finally:
            self._files.delete(hidden, True)

    def move(self, staged: str) -> None:
        """Move the files into place; in one step where the file system renames folders."""
        self._files.mkdirs(self._path.getParent())
        if self._files.exists(self._path):
            self._files.delete(self._path, False)  # empty, else this fails
        plainly = self._gateway.new_array(  # type: ignore[union-attr]
            self._jvm.org.apache.hadoop.fs.Options.Rename, 0
        )
        try:
            # Unlike FileSystem.rename, this one never moves into a folder that has just appeared.
            self._context.rename(self._jvm.org.apache.hadoop.fs.Path(staged), self._path, plainly)
        except Py4JJavaError as error:
            raise SortNotPossible(
                "the sorted files could not be moved to the new folder",
                found=str(error.java_exception.toString()),
                expected=f"{self.uri} absent",
                hint="another process may have made it meanwhile; sort again into another folder",
            ) from error

    def _child(self, parent: JavaObject, name: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(parent, name)


def _sizes(spark: SparkSession, uris: Sequence[str]) -> list[int]:
    jvm = jvm_of(spark)
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    sizes = []
    for uri in uris:
        place = jvm.org.apache.spark.paths.SparkPath.fromUrlString(uri).toPath()
        sizes.append(int(place.getFileSystem(configuration).getFileStatus(place).getLen()))
    return sizes
