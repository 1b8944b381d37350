"""Spark's schema as JSON, with the metadata of each field, which define a store's columns.

Spark writes it into the footer of every Parquet file under `ROW_METADATA`. Types of values are
given here as their `catalogString`, as `snaploom.skipping.core.terms` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from snaploom.errors import IndexUnreadable

ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
"""Footer key of the schema."""

SPARK_VERSION = b"org.apache.spark.version"
"""Footer key of the Spark that wrote, which decides the calendar of old dates and timestamps."""

JsonObject = Mapping[str, object]

_CATALOG_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_JSON_NAMES = {catalog: name for name, catalog in _CATALOG_NAMES.items()}


@dataclass(frozen=True)
class AtomType:
    """A type without parts, by its `catalogString`."""

    name: str


@dataclass(frozen=True)
class StructType:
    """A struct."""

    fields: tuple[SchemaField, ...]

    def field(self, name: str) -> SchemaField | None:
        """The field of a name; None when there is none."""
        return next((found for found in self.fields if found.name == name), None)


@dataclass(frozen=True)
class ArrayType:
    """An array."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class UserType:
    """A user-defined type of Java, stored as another type."""

    class_name: str
    storage: DataType


@dataclass(frozen=True)
class OtherType:
    """A type that no store has: a map, or one that Spark did not have when this was written."""


DataType = AtomType | StructType | ArrayType | UserType | OtherType


@dataclass(frozen=True)
class SchemaField:
    """A column or a field of a struct."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: JsonObject = field(default_factory=dict)


def parse_schema(text: bytes | str) -> StructType:
    """Parse a schema; `IndexUnreadable` if it is none."""
    try:
        parsed = _parse_type(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_schema() from error
    if not isinstance(parsed, StructType):
        raise _no_schema()
    return parsed


def dump_schema(schema: StructType) -> str:
    """A schema as Spark writes it."""
    return json.dumps(_dump_type(schema), ensure_ascii=False, separators=(",", ":"))


def _no_schema() -> IndexUnreadable:
    return IndexUnreadable(
        "a part of the metadata store has a schema that cannot be parsed",
        expected="Spark's schema as JSON",
        hint="create the index anew instead of importing it",
    )


def _parse_type(value: object) -> DataType:
    if isinstance(value, str):
        return AtomType(_CATALOG_NAMES.get(value, value))
    described = cast(dict[str, object], value)
    match described["type"]:
        case "struct":
            fields = cast(list[dict[str, object]], described["fields"])
            return StructType(tuple(_parse_field(each) for each in fields))
        case "array":
            return ArrayType(
                _parse_type(described["elementType"]), described["containsNull"] is True
            )
        case "udt":
            return UserType(str(described.get("class", "")), _parse_type(described["sqlType"]))
    return OtherType()


def _parse_field(value: dict[str, object]) -> SchemaField:
    metadata = value.get("metadata", {})
    return SchemaField(
        name=str(value["name"]),
        data_type=_parse_type(value["type"]),
        nullable=value.get("nullable", True) is True,
        metadata=dict(cast(dict[str, object], metadata)),
    )


def _dump_type(data_type: DataType) -> object:
    match data_type:
        case AtomType(name):
            return _JSON_NAMES.get(name, name)
        case StructType(fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": each.name,
                        "type": _dump_type(each.data_type),
                        "nullable": each.nullable,
                        "metadata": dict(each.metadata),
                    }
                    for each in fields
                ],
            }
        case ArrayType(element, contains_null):
            return {
                "type": "array",
                "elementType": _dump_type(element),
                "containsNull": contains_null,
            }
        case UserType(class_name, storage):
            # Spark's parser of a Java type needs the key `pyClass`, null or not.
            return {
                "type": "udt",
                "class": class_name,
                "pyClass": None,
                "sqlType": _dump_type(storage),
            }
        case OtherType():
            raise ValueError("a type that was not parsed cannot be written")
