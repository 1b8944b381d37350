"""Files that a reader of ours opens: their schemas on the driver, their rows in Spark's workers."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from snaploom.errors import SourceNotReadable, SourceSchemaInvalid
from snaploom.files.listed import ListedFile
from snaploom.files.typedfiles import FAULTS, LARGEST, RangedFile, RowsOfFiles, reader_at
from snaploom.policy.fileformats import FileFormat
from snaploom.spark.jvm import FileEnds, client_of
from snaploom.spark.types import struct_from
from snaploom.types.arrow import arrow_schema, schema_of_arrow
from snaploom.types.schemas import parse_schema, schema_json

_LOCAL = "file:"
_READ_AT_ONCE = 16
"""Schemas that are read at the same time: on stores all of the time is waiting."""


@dataclass(frozen=True)
class TypedFiles:
    """Files of one source whose format has a reader of ours."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    format: FileFormat
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """What was read of files, by URI."""

    def schema(
        self, file: ListedFile, columns: Collection[str] | None = None
    ) -> spark_types.StructType:
        """The schema of a file, all of it or of some columns, whose case does not count.

        Raises:
            SourceNotReadable: it is not of its format.
            SourceSchemaInvalid: Spark has no type for a column.
        """
        wanted = None if columns is None else {name.lower() for name in columns}
        own = self._arrow(file)
        some = [one for one in own if wanted is None or one.name.lower() in wanted]
        try:
            document = schema_json(schema_of_arrow(pa.schema(some), file.uri))
        except ValueError as error:
            raise SourceSchemaInvalid(
                str(error),
                resource=self.resource,
                path="spec.hdfsLike.sourceUriGlobs",
                found=file.uri,
                expected="columns of types that Spark has",
                hint="write the column as another type, or declare schemaFields without it",
            ) from None
        return struct_from(document, self.resource, "spec.hdfsLike")

    def schemas(self, files: Sequence[ListedFile]) -> tuple[str, ...]:
        """The schema of each file, as `StructType.json()` gives it; raises as `schema`."""
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            return tuple(pool.map(lambda file: self.schema(file).json(), files))

    def rows(
        self, files: Sequence[ListedFile], schema: spark_types.StructType, file_column: str
    ) -> RowsOfFiles:
        """The function that reads files in workers, with the columns of a schema.

        Raises:
            SourceNotReadable: a file is too large for a worker.
            SourceSchemaInvalid: Arrow has no type for a column.
        """
        for file in files:
            if file.length > LARGEST and not file.uri.startswith(_LOCAL):
                raise self._not_readable(
                    file, f"it has {file.length:,} bytes", f"files of up to {LARGEST:,} bytes"
                )
        try:
            read = arrow_schema(parse_schema(schema.json(), ""))
        except ValueError as error:
            raise SourceSchemaInvalid(
                str(error),
                resource=self.resource,
                path="spec.hdfsLike.schemaFields",
                found=schema.simpleString()[:1000],
                expected="types that Arrow has",
                hint="declare the type that the files have",
            ) from None
        return RowsOfFiles(self.format.reader, read, file_column)

    def _arrow(self, file: ListedFile) -> pa.Schema:
        if file.uri not in self._schemas:
            try:
                with self._opened(file) as opened:
                    self._schemas[file.uri] = reader_at(self.format.reader)(opened).schema
            except FAULTS as error:
                whole = f"whole {self.format.name} files"
                raise self._not_readable(file, str(error)[:1000], whole) from None
        return self._schemas[file.uri]

    def _opened(self, file: ListedFile) -> pa.NativeFile:
        if file.uri.startswith(_LOCAL):
            return pa.OSFile(file.uri.removeprefix(_LOCAL), "rb")
        read = partial(FileEnds(client_of(self.spark)).range, file)
        return pa.PythonFile(io.BufferedReader(RangedFile(file.length, read), 64 << 10), "r")

    def _not_readable(self, file: ListedFile, fault: str, expected: str) -> SourceNotReadable:
        return SourceNotReadable(
            f"a file cannot be read as {self.format.name}: {fault}",
            resource=self.resource,
            path="spec.hdfsLike.sourceUriGlobs",
            found=file.uri,
            expected=expected,
            hint="write the file again (a large one as several), or take it out of sourceUriGlobs",
        )
