"""FieldTransformers: columns renamed, cast, computed or dropped before anything else sees them.

They look at columns, not at what is inside them, and each sees what the one before it made. What
they select depends on the snapshot: a column that changed its name over the years is given one name
here, and join keys go on finding it (rule W20).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.datatypes import to_spark
from snaploom.engine.failures import translate
from snaploom.engine.sources.schemas import name_clashes
from snaploom.engine.sources.selectors import is_selected, searched
from snaploom.errors import SourceSchemaInvalid
from snaploom.models.fieldtransformer import FieldTransformer, Rename, SnapshotRange, Transformer
from snaploom.models.times import EpochNanos, parse_instant
from snaploom.planning.fieldpaths import quote
from snaploom.planning.regexes import RegexError
from snaploom.planning.sqlgate.nondeterminism import CHANGES_ROWS
from snaploom.sparkgate.gate import (
    CheckedExpression,
    SqlPlace,
    check_resolved,
    checked_expression,
)
from snaploom.sparkgate.treerules import VALUES

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
    """Where a change is declared, and whose columns it changes."""

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
    return range_ is None or _holds(range_, time)


def _holds(range_: SnapshotRange, time: EpochNanos) -> bool:
    return (range_.from_ is None or parse_instant(range_.from_) <= time) and (
        range_.to is None or time < parse_instant(range_.to)
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
    """Where the snapshot's field is after a change; a copy of it is a column like any other."""
    if not columns.snapshot_field or columns.snapshot_field[0] not in selected:
        return columns.snapshot_field
    top, *inner = columns.snapshot_field
    if change.drop is not None:
        return ()
    if change.rename is not None and change.replace_inputs:
        return (renamed(top, change.rename), *inner)
    return columns.snapshot_field
