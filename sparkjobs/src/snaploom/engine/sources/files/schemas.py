"""One schema for files that are read together, and need not have the same columns.

Of Parquet and ORC Spark takes the schema of one file for all of them, and leaves out, without a
word, what only others have. So all are asked: a column that some files lack is NULL in their rows,
a type that became wider is the wider one, and types that have nothing in common are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import types as spark_types

from snaploom.engine.schemadocument import struct_from
from snaploom.engine.sources.files.fileset import MERGED_BY_SPARK, FileSet
from snaploom.errors import SourceSchemaInvalid
from snaploom.hadoop.client import client_of
from snaploom.hadoop.fileends import FileEnds
from snaploom.listing.capturedfiles import CapturedFile
from snaploom.listing.footers import Footer, read_footers
from snaploom.models.datasource import HdfsLike
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.typemerge import TypeConflict, merge_schemas


def common_schema(files: FileSet, some: Sequence[CapturedFile]) -> spark_types.StructType | None:
    """The schema of some of a source's files; None where one file's is that of all.

    Raises:
        SourceNotReadable: Spark cannot read them.
        SourceSchemaInvalid: types of one column have nothing in common.
    """
    if len(some) < 2 or not are_asked(files.declared):
        return None
    if not have_footer_schemas(files.declared):
        return files.merged_by_spark(some)
    listed = [file.file for file in some]
    read = read_footers(listed, None, FileEnds(client_of(files.spark)).read)
    footers = {f.uri: footer for f, footer in zip(listed, read, strict=True) if footer is not None}
    if len(footers) == len(some) and len({one.schema_hash for one in footers.values()}) == 1:
        return None
    return merged_schema(files, some, inferred_schemas(files, some, footers, [None] * len(some)))


def are_asked(declared: HdfsLike) -> bool:
    """Whether the schema of files is in the files, and Spark would ask only one."""
    is_declared = declared.schema_fields is not None or "mergeSchema" in declared.format_options
    return not is_declared and declared.format.lower() in MERGED_BY_SPARK


def have_footer_schemas(declared: HdfsLike) -> bool:
    """Whether footers give the schema that Spark reads; options may make it read otherwise."""
    return declared.format.lower() == "parquet" and not declared.format_options


def inferred_schemas(
    files: FileSet,
    some: Sequence[CapturedFile],
    footers: Mapping[str, Footer],
    known: Sequence[str | None],
) -> tuple[str | None, ...]:
    """The schema of each file as `StructType.json()` gives it; None where it is not known.

    Spark infers it, of one file for all with equal footers. `some` are the files in question,
    `footers` those whose schema is not known, by URI.
    """
    inferred: dict[str, str] = {}
    schemas: list[str | None] = []
    for file, schema in zip(some, known, strict=True):
        footer = footers.get(file.file.uri)
        if schema is None and footer is not None:
            if footer.schema_hash not in inferred:
                inferred[footer.schema_hash] = files.data([file]).schema.json()
            schema = inferred[footer.schema_hash]
        schemas.append(schema)
    return tuple(schemas)


def merged_schema(
    files: FileSet, some: Sequence[CapturedFile], schemas: Sequence[str | None]
) -> spark_types.StructType:
    """The schema with the fields of all files.

    Where a schema is not known, Spark merges them.

    Raises:
        SourceNotReadable: Spark cannot read them.
        SourceSchemaInvalid: types of one column have nothing in common.
    """
    if None in schemas:
        return files.merged_by_spark(some)
    firsts: dict[str, int] = {}
    for number, schema in enumerate(schemas):
        firsts.setdefault(str(schema), number)
    if len(firsts) == 1:
        return struct_from(next(iter(firsts)), files.resource, "spec.hdfsLike")
    # The places of files stand for times: of equal names, the first one's case stays.
    merged = merge_schemas((EpochNanos(number), text) for text, number in firsts.items())
    if merged.conflicts:
        raise _conflict(files, some, merged.conflicts)
    return struct_from(merged.schema, files.resource, "spec.hdfsLike")


def _conflict(
    files: FileSet, some: Sequence[CapturedFile], conflicts: Sequence[TypeConflict]
) -> SourceSchemaInvalid:
    uris = {format_instant(EpochNanos(n)): file.file.uri for n, file in enumerate(some)}
    return SourceSchemaInvalid(
        "files give one column types that have nothing in common",
        resource=files.resource,
        path="spec.hdfsLike.sourceUriGlobs",
        found="; ".join(
            f"{each.path} is {each.first} in {uris[each.first_seen]} "
            f"and {each.second} in {uris[each.second_seen]}"
            for each in conflicts
        ),
        expected="types of which one holds all values of the other",
        hint="write the files with one type, or declare them as two sources",
    )
