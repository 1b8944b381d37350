"""One schema that reads every snapshot: the merge of types over history.

The lattice (rule P26): equal types; void gives way to any; byte < short < integer <
long; float < double; decimals widen without losing digits before or after the point; nullability
relaxes; fields come and go, and are nullable where one snapshot lacks them; parts of structs,
arrays and maps merge likewise. Everything else is a conflict. Metadata plays no part; the newest
is kept. Schemas merge in the order of snapshot time, never of publication, and the first
case and place of a field stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.schemas import (
    Array,
    Decimal,
    Field,
    Map,
    Simple,
    Struct,
    Type,
    describe,
    parse_schema,
    schema_json,
)

_WIDENINGS = (("byte", "short", "integer", "long"), ("float", "double"))
_MAX_PRECISION = 38
"""Digits of Spark's widest decimal."""


@dataclass(frozen=True, slots=True)
class TypeConflict:
    """Two snapshots give one field types that have nothing in common."""

    path: str
    first: str
    first_seen: str
    """Snapshot that gave it the first type."""
    second: str
    second_seen: str
    """Snapshot that gave it the second type."""

    def __str__(self) -> str:
        return (
            f"{self.path} is {self.first} in snapshot {self.first_seen} "
            f"and {self.second} in snapshot {self.second_seen}"
        )


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """A schema that reads all snapshots, unless there are conflicts."""

    schema: str
    """As `StructType.json()` gives it; where types conflict, the earlier one's."""
    conflicts: tuple[TypeConflict, ...]


def merge_schemas(schemas: Iterable[tuple[EpochNanos, str]]) -> MergedSchema:
    """Merge the schemas of snapshots, given by snapshot time as `StructType.json()` gives them.

    Equal schemas are merged once. Without any schema the result is the empty struct.

    Raises:
        ValueError: when a text is no schema.
    """
    conflicts: list[TypeConflict] = []
    merged: Struct | None = None
    known: set[str] = set()
    for time, text in sorted(schemas):
        if text in known:
            continue
        known.add(text)
        schema = parse_schema(text, format_instant(time))
        merged = schema if merged is None else _merge_structs(merged, schema, "", conflicts)
    return MergedSchema(schema_json(merged or Struct((), "")), tuple(conflicts))


def conflicts_with(
    history: Iterable[tuple[EpochNanos, str]], time: EpochNanos, schema: str
) -> tuple[TypeConflict, ...]:
    """Why a snapshot cannot be read together with those around it; empty when it can.

    Snapshots before and after it count as far as they can be read together themselves: what lies
    beyond an older break, which was published on purpose (rule P27), does not. A snapshot right at
    a break has to agree with one side of it.
    """
    others = sorted(history)
    before = readable_with_first([at for at in reversed(others) if at[0] < time])
    after = readable_with_first([at for at in others if at[0] > time])
    sides = [[*before, *after]]
    if before and after and merge_schemas(sides[0]).conflicts:
        sides = [before, after]
    found = [merge_schemas([*side, (time, schema)]).conflicts for side in sides]
    return min(found, key=len)


def readable_with_first(schemas: list[tuple[EpochNanos, str]]) -> list[tuple[EpochNanos, str]]:
    """The longest beginning of a list that can be read together."""
    conflicts: list[TypeConflict] = []
    merged: Struct | None = None
    known: set[str] = set()
    for index, (time, text) in enumerate(schemas):
        if text in known:
            continue
        known.add(text)
        schema = parse_schema(text, format_instant(time))
        merged = schema if merged is None else _merge_structs(merged, schema, "", conflicts)
        if conflicts:
            return schemas[:index]
    return schemas


def merged_type(first: Type, second: Type) -> Type | None:
    """The narrowest type that holds the values of both; None when there is none."""
    conflicts: list[TypeConflict] = []
    merged = _merge(first, second, "", conflicts)
    return None if conflicts else merged


def _merge(first: Type, second: Type, path: str, conflicts: list[TypeConflict]) -> Type:
    match first, second:
        case Simple("void"), _:
            return second
        case _, Simple("void"):
            return first
        case Struct(), Struct():
            return _merge_structs(first, second, path, conflicts)
        case Array(), Array():
            element = _merge(first.element, second.element, f"{path}.element", conflicts)
            return Array(element, first.contains_null or second.contains_null, first.seen)
        case Map(), Map():
            key = _merge(first.key, second.key, f"{path}.key", conflicts)
            value = _merge(first.value, second.value, f"{path}.value", conflicts)
            nulls = first.value_contains_null or second.value_contains_null
            return Map(key, value, nulls, first.seen)
    wider = _wider(first, second)
    if wider is None:
        conflicts.append(
            TypeConflict(path, describe(first), first.seen, describe(second), second.seen)
        )
        return first
    return wider


def _wider(first: Type, second: Type) -> Type | None:
    """The narrower of the types that hold both; None when there is none."""
    match first, second:
        case Simple(), Simple():
            if first.name == second.name:
                return first
            for order in _WIDENINGS:
                if first.name in order and second.name in order:
                    return max(first, second, key=lambda type_: order.index(type_.name))
        case Decimal(), Decimal():
            scale = max(first.scale, second.scale)
            whole = max(first.precision - first.scale, second.precision - second.scale)
            if (whole + scale, scale) == (first.precision, first.scale):
                return first
            if whole + scale <= _MAX_PRECISION:
                return Decimal(whole + scale, scale, second.seen)
    return None


def _merge_structs(
    first: Struct, second: Struct, path: str, conflicts: list[TypeConflict]
) -> Struct:
    merged = {field.name.casefold(): field for field in first.fields}
    for field in second.fields:
        name = field.name.casefold()
        before = merged.get(name)
        if before is None:
            merged[name] = replace(field, nullable=True)
        else:
            merged[name] = _merge_fields(before, field, path, conflicts)
    present = {field.name.casefold() for field in second.fields}
    for name, field in merged.items():
        if name not in present:
            merged[name] = replace(field, nullable=True)
    return Struct(tuple(merged.values()), first.seen)


def _merge_fields(before: Field, after: Field, path: str, conflicts: list[TypeConflict]) -> Field:
    inner = f"{path}.{before.name}" if path else before.name
    type_ = _merge(before.type, after.type, inner, conflicts)
    return Field(before.name, type_, before.nullable or after.nullable, after.metadata)
