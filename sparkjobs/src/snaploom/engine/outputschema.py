"""Schemas refused before writing, which Spark writes and nobody can read.

Spark writes a struct with `a` and `A` and then refuses to read it; Parquet fails on columns of type
void halfway through a job; Avro and JSON have rules about names and map keys that show only once a
file is written or read (rule W22). All of it is found here, by path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.fields import fold_case
from snaploom.engine.icebergschema import has_type
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.outputfolder import DataFormat
from snaploom.planning.fieldpaths import quote

_FIELD_ID = "parquet.field.id"
"""Metadata of a column that Spark writes into Parquet's schema."""
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # Avro 1.12 specification, "Names"


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Something that cannot be written, or not be read afterwards."""

    path: str
    message: str
    hint: str


def refuse_unwritable(schema: spark.StructType, data_format: DataFormat) -> None:
    """Refuse a schema that a format cannot hold.

    Raises:
        SourceSchemaInvalid: naming every fault.
    """
    faults = schema_faults(schema, data_format)
    if faults:
        more = "".join(f"; {fault.path}: {fault.message}" for fault in faults[1:])
        raise SourceSchemaInvalid(
            faults[0].message + more,
            path=faults[0].path,
            expected=f"columns that {data_format.value} files can hold and give back",
            hint=faults[0].hint,
        )


def schema_faults(schema: spark.StructType, data_format: DataFormat) -> tuple[SchemaFault, ...]:
    """Everything in a schema that a format cannot hold, in order of appearance."""
    return tuple(_faults_of(schema, "", data_format))


def _faults_of(
    data_type: spark.DataType, path: str, data_format: DataFormat
) -> Iterator[SchemaFault]:
    match data_type:
        case spark.StructType():
            yield from _struct_faults(data_type, path, data_format)
        case spark.ArrayType():
            yield from _faults_of(data_type.elementType, path, data_format)
        case spark.MapType():
            if data_format.of_files is not DataFormat.PARQUET and not isinstance(
                data_type.keyType, spark.StringType
            ):
                yield SchemaFault(
                    path,
                    f"a map with keys of type {data_type.keyType.simpleString()}; "
                    f"{data_format.value} has text keys only",
                    "cast the keys to string in a simpleVirtual source, or use PARQUET",
                )
            yield from _faults_of(data_type.keyType, path, data_format)
            yield from _faults_of(data_type.valueType, path, data_format)
        case spark.NullType():
            yield SchemaFault(
                path,
                "a column without a type (void)",
                "give it a type (cast in a query, or schemaFields), or leave it out",
            )
        case spark.CalendarIntervalType():
            yield SchemaFault(
                path,
                "a calendar interval, which no file format can hold",
                "cast it to string in a simpleVirtual source, or leave it out",
            )
        case _ if data_format is DataFormat.ICEBERG and not has_type(data_type):
            yield SchemaFault(
                path,
                f"a column of type {data_type.simpleString()}, which Iceberg does not have",
                "cast it in a simpleVirtual source, leave it out, or use PARQUET",
            )
        case _:
            pass


def _struct_faults(
    struct: spark.StructType, path: str, data_format: DataFormat
) -> Iterator[SchemaFault]:
    first_of: dict[str, str] = {}
    if not struct.fields:
        yield SchemaFault(path, "a struct without fields", "leave it out")
    for field in struct.fields:
        here = f"{path}.{_shown(field.name)}" if path else _shown(field.name)
        if not field.name:
            yield SchemaFault(here, "a column with an empty name", "rename it")
        elif data_format is DataFormat.AVRO and not _AVRO_NAME.fullmatch(field.name):
            yield SchemaFault(
                here,
                "a name that Avro does not allow (letters A-Z, digits and _ only)",
                "rename it in a simpleVirtual source, or use PARQUET",
            )
        if data_format is DataFormat.ICEBERG and _FIELD_ID in field.metadata:
            yield SchemaFault(
                here,
                f"metadata `{_FIELD_ID}`, by which Iceberg would take it for another column",
                "remove it with a MetadataApplicator (REPLACE)",
            )
        other = first_of.setdefault(fold_case(field.name), field.name)
        if other is not field.name:
            yield SchemaFault(
                here,
                f"the name is the same as {other} but for case, so that neither could be read",
                "rename one of them in a simpleVirtual source",
            )
        yield from _faults_of(field.dataType, here, data_format)


def _shown(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else quote(name)
