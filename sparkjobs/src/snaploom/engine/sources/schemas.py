"""Schemas that could be read and never written, or written and never read: refused at once.

Two columns of one struct whose names differ only in case write fine and then cannot be read, and
columns without a type fail in Parquet only when the rows are written (rule W22).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pyspark.sql import types as spark

from snaploom.engine.fields import fold_case
from snaploom.errors import SourceSchemaInvalid


def check_schema(schema: spark.StructType, resource: str, path: str) -> None:
    """Refuse columns that clash ignoring case, and columns without a type.

    Raises:
        SourceSchemaInvalid: naming every column concerned.
    """
    clashes = sorted(name_clashes(schema))
    if clashes:
        raise SourceSchemaInvalid(
            "columns have names that differ in case only, or not at all",
            resource=resource,
            path=path,
            found="; ".join(clashes),
            expected="names that are unique ignoring case, within each struct",
            hint="rename one of them where the data is made, or choose columns by a simpleVirtual "
            "source or schemaFields",
        )
    untyped = sorted(_untyped(schema, ""))
    if untyped:
        raise SourceSchemaInvalid(
            "columns have no type (void), which no file format can hold",
            resource=resource,
            path=path,
            found=", ".join(untyped),
            expected="a type for every column",
            hint="declare it in schemaFields, or cast it in the query",
        )


def name_clashes(schema: spark.StructType) -> Iterator[str]:
    """The names of one struct, by path, that are the same ignoring case."""
    return _clashes(schema, "")


def _clashes(data_type: spark.DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, spark.StructType):
        by_name: dict[str, list[str]] = defaultdict(list)
        for field in data_type.fields:
            by_name[fold_case(field.name)].append(field.name)
        for names in by_name.values():
            if len(names) > 1:
                yield " and ".join(_below(path, name) for name in names)
    for part, inner in _inner(data_type, path):
        yield from _clashes(inner, part)


def _untyped(data_type: spark.DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, spark.NullType):
        yield path
    for part, inner in _inner(data_type, path):
        yield from _untyped(inner, part)


def _inner(data_type: spark.DataType, path: str) -> Iterator[tuple[str, spark.DataType]]:
    if isinstance(data_type, spark.StructType):
        for field in data_type.fields:
            yield _below(path, field.name), field.dataType
    elif isinstance(data_type, spark.ArrayType):
        yield f"{path}[]", data_type.elementType
    elif isinstance(data_type, spark.MapType):
        yield f"{path}{{key}}", data_type.keyType
        yield f"{path}{{value}}", data_type.valueType


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
