"""Fields of a Spark schema, found by a path and compared with a declared type.

Names are compared ignoring case, as Spark does with `caseSensitive=false`; what is found keeps the
case that it has in the data (rule W3). A field of another type than declared counts as missing
(rule W28), whatever its nullability and metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.models.common import DataType
from snaploom.planning.fieldpaths import path_text, quote, split_path


@dataclass(frozen=True, slots=True)
class Found:
    """A field of a schema."""

    parts: tuple[str, ...]
    """Names from the top level down, in the case of the data."""
    data_type: spark.DataType
    metadata: dict[str, object]

    @property
    def path(self) -> str:
        """The names joined by `.`, as people write them."""
        return path_text(self.parts)

    @property
    def expression(self) -> str:
        """The field as Spark's parser reads it, every name quoted."""
        return ".".join(quote(part) for part in self.parts)


def find_field(schema: spark.DataType, path: str) -> Found | None:
    """The field at a path, ignoring case; None when there is none.

    A path leads through structs only, not into arrays and maps. A column whose own name contains a
    dot is written in backticks, as in Spark.
    """
    names = split_path(path)
    if names is None:
        return None
    found: list[str] = []
    current: spark.DataType = schema
    metadata: dict[str, object] = {}
    for name in names:
        field = _member(current, name)
        if field is None:
            return None
        found.append(field.name)
        current, metadata = field.dataType, dict(field.metadata or {})
    return Found(tuple(found), current, metadata)


def matches(declared: DataType, actual: spark.DataType) -> bool:
    """Whether data of a type fits the declared one, ignoring nullability, metadata and case."""
    return _bare(to_spark(declared)) == _bare(actual)


def same_types(one: spark.DataType, other: spark.DataType) -> bool:
    """Whether two types are the same, ignoring nullability, metadata and case."""
    return _bare(one) == _bare(other)


def _member(container: spark.DataType, name: str) -> spark.StructField | None:
    if not isinstance(container, spark.StructType):
        return None
    wanted = fold_case(name)
    return next((field for field in container.fields if fold_case(field.name) == wanted), None)


def fold_case(name: str) -> str:
    """The form in which names are compared: lower case, as Spark's own resolver has it."""
    return name.lower()


def _bare(data_type: spark.DataType) -> spark.DataType:
    if isinstance(data_type, spark.StructType):
        return spark.StructType(
            [spark.StructField(fold_case(f.name), _bare(f.dataType)) for f in data_type.fields]
        )
    if isinstance(data_type, spark.ArrayType):
        return spark.ArrayType(_bare(data_type.elementType))
    if isinstance(data_type, spark.MapType):
        return spark.MapType(_bare(data_type.keyType), _bare(data_type.valueType))
    return data_type
