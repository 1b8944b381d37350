"""Types, fields and metadata of Spark's schemas, and their forms as declared and as documents."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.errors import SourceSchemaInvalid
from snaploom.models import common
from snaploom.types.schemas import SIMPLE_TYPES, parse_schema, path_text, quote, split_path

# Metadata of columns: the same rows under a schema that differs in metadata only.

Metadata = dict[str, object]
MetadataChange = Callable[[str, Metadata], Metadata]
"""From coordinate (see `below`) and metadata of a field to the metadata that it is to have."""


def relabelled(frame: DataFrame, schema: spark.StructType) -> DataFrame:
    """The same rows with the metadata of a schema that differs from the frame's in nothing else."""
    if frame.schema == schema:
        return frame
    pairs = zip(frame.schema.fields, schema.fields, strict=True)
    return frame.select(*(_column(own, wanted) for own, wanted in pairs))


def _column(own: spark.StructField, wanted: spark.StructField) -> Column:
    column = sf.col(quote(own.name))
    if own.dataType != wanted.dataType:
        column = column.cast(wanted.dataType)
    elif own.metadata == wanted.metadata:
        return column
    return column.alias(own.name, metadata=wanted.metadata)


def without_metadata(schema: spark.StructType) -> spark.StructType:
    """The schema with no metadata on any field."""
    return changed(schema, lambda _coordinate, _metadata: {})


def changed(schema: spark.StructType, change: MetadataChange) -> spark.StructType:
    """The schema with the metadata of every field changed, those inside others included."""
    found = _changed(schema, "", change)
    assert isinstance(found, spark.StructType)
    return found


def below(coordinate: str, name: str) -> str:
    """The coordinate of a field inside another (rule W20): names joined by `:`.

    Arrays add no name of their own, `list:field` is a field of the list's elements; maps add `key`
    or `value`.
    """
    return f"{coordinate}:{name}" if coordinate else name


def _changed(data_type: spark.DataType, at: str, change: MetadataChange) -> spark.DataType:
    match data_type:
        case spark.StructType():
            return spark.StructType([_field(field, at, change) for field in data_type.fields])
        case spark.ArrayType():
            element = _changed(data_type.elementType, at, change)
            return spark.ArrayType(element, data_type.containsNull)
        case spark.MapType():
            return spark.MapType(
                _changed(data_type.keyType, below(at, "key"), change),
                _changed(data_type.valueType, below(at, "value"), change),
                data_type.valueContainsNull,
            )
    return data_type


def _field(field: spark.StructField, at: str, change: MetadataChange) -> spark.StructField:
    here = below(at, field.name)
    return spark.StructField(
        field.name,
        _changed(field.dataType, here, change),
        field.nullable,
        change(here, dict(field.metadata or {})),
    )


def typed_nulls(fields: Sequence[spark.StructField]) -> spark.StructType:
    """Columns where what has no type, as no value, is an integer, as Spark reads it of Parquet."""
    untyped = re.sub('(ype"):"void"', r'\1:"integer"', spark.StructType(list(fields)).json())
    return spark.StructType.fromJson(json.loads(untyped))


def as_nullable(schema: spark.StructType) -> spark.StructType:
    """The schema with every part allowed to be NULL, as Spark reads it from files."""
    found = _as_nullable(schema)
    assert isinstance(found, spark.StructType)
    return found


def _as_nullable(data_type: spark.DataType) -> spark.DataType:
    match data_type:
        case spark.StructType():
            return spark.StructType(
                [
                    spark.StructField(f.name, _as_nullable(f.dataType), True, f.metadata)
                    for f in data_type.fields
                ]
            )
        case spark.ArrayType():
            return spark.ArrayType(_as_nullable(data_type.elementType))
        case spark.MapType():
            return spark.MapType(_as_nullable(data_type.keyType), _as_nullable(data_type.valueType))
    return data_type


# Data types as declarations write them, and as Spark has them.


def _simple(name: str) -> spark.DataType:
    field = {"name": name, "type": name, "nullable": True, "metadata": {}}
    return spark.StructField.fromJson(field).dataType


SIMPLE: Mapping[str, spark.DataType] = {each.sql: _simple(each.spark) for each in SIMPLE_TYPES}
"""Spark's simple types by their names in SQL."""
_SIMPLE = {each.declared: SIMPLE[each.sql] for each in SIMPLE_TYPES}


def to_spark(declared: common.DataType) -> spark.DataType:
    """The Spark type of a declared type."""
    if declared.array is not None:
        return spark.ArrayType(to_spark(declared.array.element_type), declared.array.contains_null)
    if declared.map_ is not None:
        entry = declared.map_
        return spark.MapType(
            to_spark(entry.key_type), to_spark(entry.value_type), entry.value_contains_null
        )
    if declared.struct is not None:
        return struct_of(declared.struct.fields_)
    if declared.decimal is not None:
        return spark.DecimalType(declared.decimal.precision, declared.decimal.scale)
    return _SIMPLE[common.DataType.variant_of(declared)]


def struct_of(fields: Iterable[common.SchemaField]) -> spark.StructType:
    """The Spark schema of declared fields, with their nullability and metadata."""
    return spark.StructType(
        [
            spark.StructField(
                field.name, to_spark(field.data_type), field.nullable, dict(field.metadata)
            )
            for field in fields
        ]
    )


def from_spark(actual: spark.DataType) -> common.DataType | None:
    """The declaration of a Spark type; None when declarations have no name for it."""
    if isinstance(actual, spark.ArrayType):
        element = from_spark(actual.elementType)
        if element is None:
            return None
        return common.DataType(
            array=common.ArrayType(element_type=element, contains_null=actual.containsNull)
        )
    if isinstance(actual, spark.MapType):
        key, value = from_spark(actual.keyType), from_spark(actual.valueType)
        if key is None or value is None:
            return None
        nulls = actual.valueContainsNull
        return common.DataType(
            map_=common.MapType(key_type=key, value_type=value, value_contains_null=nulls)
        )
    if isinstance(actual, spark.StructType):
        return _from_struct(actual)
    if isinstance(actual, spark.DecimalType):
        return common.DataType(
            decimal=common.DecimalType(precision=actual.precision, scale=actual.scale)
        )
    tag = next((tag for tag, simple in _SIMPLE.items() if simple == actual), None)
    return None if tag is None else common.DataType.model_validate({tag: common.Empty()})


def _from_struct(actual: spark.StructType) -> common.DataType | None:
    fields: list[common.SchemaField] = []
    for field in actual.fields:
        data_type = from_spark(field.dataType)
        if data_type is None:
            return None
        metadata = {key: str(value) for key, value in (field.metadata or {}).items()}
        fields.append(
            common.SchemaField(
                name=field.name, data_type=data_type, nullable=field.nullable, metadata=metadata
            )
        )
    return common.DataType(struct=common.StructType(fields_=tuple(fields))) if fields else None


# Fields of a Spark schema, found by a path and compared with a declared type.


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


def matches(declared: common.DataType, actual: spark.DataType) -> bool:
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


# Schemas of files as Spark's types, for files of any writer.

HIVE_PLACE = "_col"
"""Hive's names of columns of ORC files, by their place: Spark reads a file that has only such names
by the places of its columns."""
_FAILURES = (
    ValueError, TypeError, LookupError, AttributeError, AssertionError, PySparkException,
    RecursionError,
)  # fmt: skip
"""PySpark's errors about a type, a collation or a reference system that it does not know."""


def struct_from(document: str, resource: str = "", path: str = "") -> spark.StructType:
    """The schema in a JSON document, as `StructType.json()` gives it."""
    try:
        parse_schema(document, "")
        return spark.StructType.fromJson(json.loads(document))
    except _FAILURES as error:
        raise SourceSchemaInvalid(
            "this is not a schema that Snaploom reads",
            resource=resource,
            path=path,
            found=str(error)[:1000] or type(error).__name__,
            expected="types of Spark's own",
            hint="check its writer; write the columns as types that every session knows",
        ) from None


def schema_of(
    frame: DataFrame, resource: str = "", path: str = "", columns: Collection[str] | None = None
) -> spark.StructType:
    """The schema of a frame whose files contain it.

    `columns` are the requested names, ignoring case; None for all. The types of others are not
    checked. Names that Hive gives by place are always requested.
    """
    document = str(frame._jdf.schema().json())
    if columns is not None:
        wanted = {fold_case(name) for name in columns}
        parsed = json.loads(document)
        parsed["fields"] = [
            field
            for field in parsed["fields"]
            if fold_case(field["name"]) in wanted or field["name"].startswith(HIVE_PLACE)
        ]
        document = json.dumps(parsed)
    return struct_from(document, resource, path)


# Frames of older or newer schemas, made to look like the merged one.


def conform_frame(frame: DataFrame, schema: spark.StructType) -> DataFrame:
    """The frame's rows under a schema that its own was merged into."""
    return frame.select(*_conformed(frame.schema, schema, lambda name: sf.col(quote(name))))


def conform(column: Column, own: spark.DataType, wanted: spark.DataType) -> Column:
    """A value of one type as the wider one; the types must have been merged."""
    match own, wanted:
        case spark.StructType(), spark.StructType():
            return sf.when(column.isNotNull(), sf.struct(*_conformed(own, wanted, column.getField)))
        case spark.ArrayType(), spark.ArrayType():
            elements, target = own.elementType, wanted.elementType
            return sf.transform(column, lambda element: conform(element, elements, target))
        case spark.MapType(), spark.MapType():
            return _map(column, own, wanted)
    return column if own == wanted else column.cast(wanted)


def _conformed(
    own: spark.StructType, wanted: spark.StructType, column_of: Callable[[str], Column]
) -> Iterator[Column]:
    fields = {field.name.casefold(): field for field in own.fields}
    for field in wanted.fields:
        source = fields.get(field.name.casefold())
        if source is None:
            column = sf.lit(None).cast(field.dataType)
        else:
            column = conform(column_of(source.name), source.dataType, field.dataType)
        yield column.alias(field.name, metadata=field.metadata)


def _map(column: Column, own: spark.MapType, wanted: spark.MapType) -> Column:
    keys = sf.transform(sf.map_keys(column), lambda key: conform(key, own.keyType, wanted.keyType))
    values = sf.transform(
        sf.map_values(column), lambda value: conform(value, own.valueType, wanted.valueType)
    )
    return sf.when(column.isNotNull(), sf.map_from_arrays(keys, values))
