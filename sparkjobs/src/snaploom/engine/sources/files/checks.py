"""Facts about files that are found out before they are read, each file once in a run.

Of files that contain types, those are compared with the declared ones; of JSON and of
text, records are looked at that Spark would read in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from snaploom.engine.datatypes import struct_of
from snaploom.engine.schemadocument import HIVE_PLACE
from snaploom.engine.sources.files.text.recordchecks import check_json, check_text
from snaploom.engine.sources.files.types import TypeMismatch, type_mismatches
from snaploom.errors import SourceError, SourceSchemaInvalid
from snaploom.hadoop.client import client_of
from snaploom.hadoop.fileends import FileEnds
from snaploom.listing.footers import read_footers
from snaploom.listing.globs import escape_glob
from snaploom.listing.listedfile import ListedFile
from snaploom.models.datasource import HdfsLike
from snaploom.planning.fileformats import SELF_DESCRIBING

ASKED_AT_ONCE = 8
"""Headers of Avro that are read at the same time: on stores most of the time is waiting."""
_FIELDS = "spec.hdfsLike.schemaFields"

OwnSchema = Callable[[Sequence[ListedFile]], spark_types.StructType]
"""The schema that files have by themselves, of the declared columns: of Parquet and Avro of one
file, of ORC of as many as agree; raises a `SourceError` where they do not."""


@dataclass(frozen=True)
class FileChecks:
    """The checks of one source's files."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    declared: HdfsLike
    own_schema: OwnSchema
    _passed: set[str] = field(default_factory=set)
    """URIs of files that need not be looked at again."""

    def check(self, files: Sequence[ListedFile]) -> None:
        """Refuse files that Spark would read other than they are written.

        Raises:
            SourceSchemaInvalid: a declared type does not hold all values of a file's own.
            SourceNotReadable: a file has records that Spark would read in part, or is broken.
        """
        unknown = [file for file in files if file.uri not in self._passed]
        if not unknown:
            return
        data_format = self.declared.format.lower()
        check = {"json": check_json, "text": check_text}.get(data_format)
        if check is not None:
            paths = [escape_glob(file.uri) for file in unknown]
            check(self.spark, paths, self.declared.format_options, self.resource)
        if data_format in SELF_DESCRIBING and self.declared.schema_fields is not None:
            # Hive writes ORC files of zero bytes, which hold nothing.
            self._check_types([file for file in unknown if file.length], data_format)
        self._passed.update(file.uri for file in unknown)

    def _check_types(self, files: Sequence[ListedFile], data_format: str) -> None:
        declared = struct_of(self.declared.schema_fields or ())
        for file, own in self._schemas(files, declared, data_format):
            mismatches = tuple(type_mismatches(own, declared, data_format))
            if mismatches:
                raise self._refused(file, mismatches)

    def _schemas(
        self, files: Sequence[ListedFile], declared: spark_types.StructType, data_format: str
    ) -> Iterator[tuple[ListedFile, spark_types.StructType]]:
        if data_format == "parquet":
            footers = read_footers(files, None, FileEnds(client_of(self.spark)).read)
            # A file whose footer cannot be read here is like no other, and is Spark's to judge.
            keys = [
                one.schema_hash if one else file.uri
                for file, one in zip(files, footers, strict=True)
            ]
            for file in dict(zip(reversed(keys), reversed(files), strict=True)).values():
                yield file, self.own_schema([file])
            return
        if data_format == "orc" and len(files) > 1:
            # By one job over the ends of all files; what is merged holds the types of each.
            try:
                merged = self.own_schema(files)
            except SourceError:
                merged = None
            if merged is not None and _all_fit(merged, declared, data_format):
                return
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            own = pool.map(lambda file: self.own_schema([file]), files)
            yield from zip(files, own, strict=True)

    def _refused(self, file: ListedFile, mismatches: Sequence[TypeMismatch]) -> SourceSchemaInvalid:
        found = ", ".join(f"{one.path} is {one.found}" for one in mismatches)
        expected = ", ".join(f"{one.path} {one.expected}" for one in mismatches)
        return SourceSchemaInvalid(
            "a file has columns whose values the declared types do not hold",
            resource=self.resource,
            path=f"{_FIELDS}[{mismatches[0].place}].dataType",
            found=f"{found} in {file.uri}",
            expected=f"{expected}, or a narrower type",
            hint="declare the type that the file has, and convert it by an expression of a "
            "FieldTransformer; or write "
            "the file with the declared type; or leave the column out of schemaFields",
        )


def _all_fit(
    merged: spark_types.StructType, declared: spark_types.StructType, data_format: str
) -> bool:
    """Whether all files of a merged schema fit; it no longer shows which file has which type."""
    is_by_name = not any(name.startswith(HIVE_PLACE) for name in merged.names)
    return is_by_name and not any(type_mismatches(merged, declared, data_format))
