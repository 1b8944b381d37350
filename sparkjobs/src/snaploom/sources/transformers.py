"""Transformers and metadata of a source, and the fields that they select."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.models.fieldtransformer import (
    ApplicatorBehaviour,
    CoordinateSelector,
    FieldTransformer,
    MetadataApplicator,
    Rename,
    Transformer,
    TransformerSelector,
)
from snaploom.policy.regexes import RegexError, regex
from snaploom.policy.sqlfunctions import CHANGES_ROWS
from snaploom.spark.failures import translate
from snaploom.spark.gate import CheckedExpression, SqlPlace, check_resolved, checked_expression
from snaploom.spark.trees import VALUES
from snaploom.spark.types import Metadata, changed, fold_case, to_spark
from snaploom.types.schemas import quote

# Schemas that could be read and never written, or written and never read: refused at once.


def check_schema(schema: spark.StructType, resource: str, path: str) -> None:
    """Refuse columns that clash ignoring case, and columns without a type."""
    clashes = sorted(name_clashes(schema))
    if clashes:
        raise SourceSchemaInvalid(
            "columns have names that differ in case only, or not at all",
            resource=resource,
            path=path,
            found="; ".join(clashes),
            expected="names that are unique ignoring case, within each struct",
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


# Fields that a declaration selects: by their coordinate, by their metadata, or by both.

Selector = CoordinateSelector | TransformerSelector

searched = lru_cache(maxsize=1024)(regex)
"""The regular expressions of a job, each compiled once."""


def is_selected(
    selectors: Iterable[Selector], coordinate: str, metadata: Mapping[str, object]
) -> bool:
    """Whether any of the selectors selects a field.

    Raises:
        RegexError: a pattern is not valid, or cannot be judged for this coordinate.
    """
    return any(_selects(selector, coordinate, metadata) for selector in selectors)


def _selects(selector: Selector, coordinate: str, metadata: Mapping[str, object]) -> bool:
    include, exclude = selector.coordinate_include_regex, selector.coordinate_exclude_regex
    if exclude is not None and searched(exclude).is_found_in(coordinate):
        return False
    if include is not None and not searched(include).is_found_in(coordinate):
        return False
    wanted = selector.metadata if isinstance(selector, TransformerSelector) else None
    return wanted is None or all(
        key in metadata and _text(metadata[key]) == value for key, value in wanted.items()
    )


def _text(value: object) -> str:
    """A value of metadata as declarations write it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


# MetadataApplicators: metadata that declarations attach to fields of a source, in order.


def applied(
    schema: spark.StructType, applicators: Iterable[MetadataApplicator]
) -> spark.StructType:
    """The schema with the metadata that the applicators attach, one after the other.

    Raises:
        SourceSchemaInvalid: a selector's pattern cannot be judged for a coordinate.
    """
    for applicator in applicators:
        schema = _applied(schema, applicator)
    return schema


def _applied(schema: spark.StructType, applicator: MetadataApplicator) -> spark.StructType:
    selectors = applicator.spec.field_selectors

    def change(coordinate: str, metadata: Metadata) -> Metadata:
        try:
            selected = is_selected(selectors, coordinate, metadata)
        except RegexError as error:
            raise SourceSchemaInvalid(
                f"a regular expression cannot be applied: {error}",
                resource=applicator.identity,
                path="spec.fieldSelectors",
                found=coordinate[:256],
                hint="narrow the selectors, or rename the field by a FieldTransformer",
            ) from error
        return _attached(metadata, applicator) if selected else metadata

    return changed(schema, change)


def _attached(metadata: Metadata, applicator: MetadataApplicator) -> Metadata:
    given: Metadata = dict(applicator.spec.metadata)
    match applicator.spec.behaviour:
        case ApplicatorBehaviour.IGNORE:
            return given | metadata
        case ApplicatorBehaviour.MERGE:
            return metadata | given
        case ApplicatorBehaviour.REPLACE:
            return given


# FieldTransformers: columns renamed, cast, computed or dropped before anything else sees them.

VALUE = "value"
"""Name by which an expression reads the field that it computes anew."""
_SCOPE = replace(VALUES, columns=frozenset({VALUE}))


@dataclass(frozen=True)
class Columns:
    """The columns of one snapshot on their way through transformers."""

    frame: DataFrame
    snapshot_field: tuple[str, ...]
    """Path of the snapshot's field under the name that it has by now; empty when it is gone."""


def transformed(
    columns: Columns, transformers: Iterable[FieldTransformer], time: EpochNanos, source: str
) -> Columns:
    """The columns after all transformers that apply to a snapshot.

    Raises:
        SourceSchemaInvalid: two columns would have the same name, ignoring case, or Spark refuses a
            cast or an expression.
    """
    for transformer in transformers:
        for index, change in enumerate(transformer.spec.transformers):
            if is_in_effect(change, time):
                place = _Place(transformer.identity, f"spec.transformers[{index}]", source)
                columns = _changed(columns, change, place)
    return columns


def renamed(name: str, rename: Rename) -> str:
    """The new name of a field; where a pattern is not found in it, the old one.

    Raises:
        RegexError: the pattern is not valid, or cannot be judged for this name.
    """
    if rename.pattern is None:
        return rename.to or name
    return searched(rename.pattern).replaced(name, rename.replacement or "")


@dataclass(frozen=True)
class _Place:
    """Place in which a change is declared, and the source whose columns it changes."""

    resource: str
    path: str
    source: str

    def refused(
        self, message: str, found: str | None = None, expected: str | None = None, hint: str = ""
    ) -> SourceSchemaInvalid:
        return SourceSchemaInvalid(
            f"{message} (a snapshot of {self.source})",
            resource=self.resource,
            path=self.path,
            found=found,
            expected=expected,
            hint=hint or "narrow the selectors, or the snapshotRange",
        )

    @property
    def sql(self) -> SqlPlace:
        """The place of the change's expression."""
        return SqlPlace(
            self.resource,
            self.path,
            SourceSchemaInvalid,
            f"an expression over `{VALUE}`, of listed functions",
            f"a snapshot of {self.source}",
            varying=CHANGES_ROWS,
        )


def is_in_effect(change: Transformer, time: EpochNanos) -> bool:
    """Whether a change applies to the snapshot of a time."""
    range_ = change.snapshot_range
    return range_ is None or (
        (range_.from_ is None or parse_instant(range_.from_) <= time)
        and (range_.to is None or time < parse_instant(range_.to))
    )


def _changed(columns: Columns, change: Transformer, place: _Place) -> Columns:
    fields = columns.frame.schema.fields
    try:
        selected = {
            f.name for f in fields if is_selected(change.selectors, f.name, f.metadata or {})
        }
        if not selected:
            return columns
        session = columns.frame.sparkSession
        checked = (
            checked_expression(session, change.expression.sql, place.sql, _SCOPE)
            if change.expression is not None
            else None
        )
        made = [
            column
            for field in fields
            for column in (
                _made(field, change, checked) if field.name in selected else [_kept(field)]
            )
        ]
    except RegexError as error:
        raise place.refused(f"a regular expression cannot be applied: {error}") from error
    try:
        frame = columns.frame.select(*made)
        if checked is not None:
            check_resolved(frame, [columns.frame], place.sql)
        schema = frame.schema
    except (PySparkException, Py4JError) as error:
        cause = translate(error)
        raise place.refused(
            f"Spark refuses this: {cause.message}", hint=cause.hint or ""
        ) from error
    clashes = sorted(name_clashes(schema))
    if clashes:
        raise place.refused(
            "two columns would have names that differ in case only, or not at all",
            found="; ".join(clashes),
            expected="columns whose names are unique, ignoring case, after each transformer",
        )
    return replace(columns, frame=frame, snapshot_field=_followed(columns, change, selected))


def _kept(field: spark.StructField) -> Column:
    return sf.col(quote(field.name))


def _made(
    field: spark.StructField, change: Transformer, checked: CheckedExpression | None
) -> Iterator[Column]:
    column = _kept(field)
    name, metadata = field.name, field.metadata or {}
    if change.rename is not None:
        name = renamed(field.name, change.rename)
        if name == field.name or not change.replace_inputs:
            yield column
        if name != field.name:
            yield column.alias(name, metadata=metadata)
    elif change.cast is not None:
        yield column.try_cast(to_spark(change.cast.data_type)).alias(name, metadata=metadata)
    elif checked is not None:
        # A lambda's variable, so that no column of this name can be meant.
        sql = f"transform(array({quote(name)}), {VALUE} -> (\n{checked.text}\n))[0]"
        yield checked.within(sql).alias(name, metadata=metadata)


def _followed(columns: Columns, change: Transformer, selected: set[str]) -> tuple[str, ...]:
    """Return the snapshot field's place after a change; a copy is like any other column."""
    if not columns.snapshot_field or columns.snapshot_field[0] not in selected:
        return columns.snapshot_field
    top, *inner = columns.snapshot_field
    if change.drop is not None:
        return ()
    if change.rename is not None and change.replace_inputs:
        return (renamed(top, change.rename), *inner)
    return columns.snapshot_field
