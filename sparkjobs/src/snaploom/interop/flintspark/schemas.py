"""Schemas of Spark for mappings of OpenSearch, both ways, and as Arrow (see `flintfields`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from snaploom.errors import IndexNotPossible
from snaploom.interop.flint.fields import OWN, field_of, type_of

TEXT = {"osType": "text"}
"""Metadata of a string that is a `text` field."""

DOCUMENT_ID = "_id"
"""Column of a given schema that is filled with the documents' ids."""

_TYPES: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "smallint": ShortType(),
    "tinyint": ByteType(),
    "double": DoubleType(),
    "float": FloatType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}

_ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def schema_of(properties: Mapping[str, Any], outer: str = "") -> StructType:
    """The schema of a mapping's properties.

    Raises:
        IndexNotPossible: a field that Spark has no type for; with its name.
    """
    fields = []
    for name, field in properties.items():
        if name == OWN and not outer:
            continue
        whole = f"{outer}{name}"
        kind = str(field.get("type", "object"))
        if kind in ("object", "nested"):
            inner = _inner_schema(whole, field)
            data_type: DataType = ArrayType(inner) if kind == "nested" else inner
        else:
            data_type = _TYPES[type_of(whole, field)]
        fields.append(StructField(name, data_type, True, TEXT if kind == "text" else None))
    return StructType(fields)


def _inner_schema(name: str, field: Mapping[str, Any]) -> StructType:
    if not field.get("properties"):
        raise IndexNotPossible(
            f"the mapping does not contain the fields of {name}",
            found="an object without properties",
            hint="give a schema",
        )
    return schema_of(field["properties"], f"{name}.")


def mapping_of_schema(schema: StructType, outer: str = "") -> dict[str, object]:
    """The properties of a mapping for a schema; an array has the field of its elements.

    Raises:
        IndexNotPossible: a type that OpenSearch has no field for; with the column's name.
    """
    return {field.name: _field(f"{outer}{field.name}", field) for field in schema.fields}


def _field(name: str, field: StructField) -> dict[str, object]:
    data_type = field.dataType
    if isinstance(data_type, ArrayType):
        data_type = data_type.elementType
    if isinstance(data_type, StructType):
        return {"properties": mapping_of_schema(data_type, f"{name}.")}
    if field.metadata.get("osType") == "text" and isinstance(data_type, StringType):
        return {"type": "text"}
    found = field_of(simple_name(data_type))
    if found is None:
        raise _no_field(name, field.dataType)
    return found


def _no_field(name: str, data_type: DataType) -> IndexNotPossible:
    return IndexNotPossible(
        f"OpenSearch has no field for the column {name}",
        found=data_type.simpleString(),
        expected=", ".join([*_TYPES, "struct", "array of one of these"]),
        hint="cast it: a decimal to STRING or DOUBLE, a map to an array of structs",
    )


def simple_name(data_type: DataType) -> str:
    """The `catalogString` of a simple type; text of any kind is `string`."""
    return "string" if isinstance(data_type, StringType) else data_type.simpleString()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Schema of batches of a Python data source, without metadata; else `IndexNotPossible`."""
    return pa.schema([_arrow_field(field.name, field) for field in schema.fields])


def _arrow_field(name: str, field: StructField) -> pa.Field:
    return pa.field(field.name, _arrow_type(name, field.dataType), field.nullable)


def _arrow_type(name: str, data_type: DataType) -> pa.DataType:
    if isinstance(data_type, ArrayType):
        element = _arrow_type(name, data_type.elementType)
        return pa.list_(pa.field("element", element, data_type.containsNull))
    if isinstance(data_type, StructType):
        return pa.struct([_arrow_field(f"{name}.{one.name}", one) for one in data_type.fields])
    if simple_name(data_type) not in _ARROW:
        raise _no_field(name, data_type)
    return _ARROW[simple_name(data_type)]
