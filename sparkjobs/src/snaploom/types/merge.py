"""Merging of types over history, casts between types, fields of two schemas, and texts of keys."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pydantic import JsonValue

from snaploom.models.common import DataType, EpochNanos, format_instant
from snaploom.models.datarelationship import Normalization
from snaploom.types.schemas import (
    MOST_DIGITS,
    SIMPLE_TYPES,
    Array,
    Decimal,
    Field,
    Map,
    Simple,
    Struct,
    Type,
    describe,
    parse_schema,
    path_text,
    schema_json,
)

# Casts that Spark's `try_cast` makes, as far as declarations can name them.

_WHOLE = frozenset(each.declared for each in SIMPLE_TYPES if each.bits)
_NUMBERS = _WHOLE | {"float", "double", "decimal"}
_FROM: dict[str, frozenset[str]] = {
    "binary": frozenset(["string"]),
    "boolean": _NUMBERS | {"string"},
    "calendarInterval": frozenset(["string"]),
    "date": frozenset(["string", "timestamp", "timestampNtz"]),
    "timestamp": _NUMBERS | {"string", "date", "timestampNtz"},
    "timestampNtz": frozenset(["string", "date", "timestamp"]),
    **dict.fromkeys(_NUMBERS, _NUMBERS | {"string", "boolean", "timestamp"}),
}
"""Simple types from which each type can be cast, besides itself."""


_CONTAINERS = frozenset(["array", "map", "struct"])


def can_cast(given: DataType, wanted: DataType) -> bool:
    """Whether Spark can cast one type to another at all; a single value may still become NULL."""
    before, after = DataType.variant_of(given), DataType.variant_of(wanted)
    if before in _CONTAINERS or after in _CONTAINERS:
        return _can_cast_inside(given, wanted)
    return before in (after, "null") or after == "string" or before in _FROM.get(after, ())


def _can_cast_inside(given: DataType, wanted: DataType) -> bool:
    """The same of parts of containers, inside which Spark casts more simple types."""
    before, after = DataType.variant_of(given), DataType.variant_of(wanted)
    if before == "null" or after == "string":
        return True
    if given.array is not None and wanted.array is not None:
        return _can_cast_inside(given.array.element_type, wanted.array.element_type)
    if given.map_ is not None and wanted.map_ is not None:
        keys = (given.map_.key_type, wanted.map_.key_type)
        return _can_cast_inside(*keys) and _can_cast_inside(
            given.map_.value_type, wanted.map_.value_type
        )
    if given.struct is not None and wanted.struct is not None:
        one, other = given.struct.fields_, wanted.struct.fields_
        return len(one) == len(other) and all(
            _can_cast_inside(a.data_type, b.data_type) for a, b in zip(one, other, strict=True)
        )
    return not {before, after} & _CONTAINERS


# Types of join keys whose texts differ for equal values, and the casts that fix them.

_DIGITS = {each.declared: each.digits for each in SIMPLE_TYPES if each.digits}
"""Digits of whole numbers."""
_FLOATING = frozenset({"float", "double"})
_ANY_TEXT = frozenset({"string", "binary"})
"""Types whose values may be the text of any other."""
_NESTED = frozenset({"array", "struct", "map"})
_QUERY = "a query on one side that gives what the other side has"


def common_cast(one: DataType, other: DataType) -> str | None:
    """The fix for two types whose texts differ for equal values; None where they agree."""
    first, second = DataType.variant_of(one), DataType.variant_of(other)
    if one == other or {first, second} & (_ANY_TEXT | _NESTED):
        return None
    if {first, second} == {"date", "timestamp"}:
        return "castDataType: {date: {}} to compare days, or {timestamp: {}} to compare instants"
    digits = _whole_and_fraction(one), _whole_and_fraction(other)
    if digits[0] is not None and digits[1] is not None:
        if digits[0][1] == digits[1][1]:
            return None
        fraction = max(digits[0][1], digits[1][1])
        precision = min(MOST_DIGITS, max(digits[0][0], digits[1][0]) + fraction)
        return f"castDataType: {{decimal: {{precision: {precision}, scale: {fraction}}}}}"
    if first in _FLOATING and second in _FLOATING:
        return None
    if is_numeric(one) and is_numeric(other):
        return "castDataType: {double: {}}, which is exact for whole numbers up to 2^53"
    if "boolean" in (first, second) and all(
        variant == "boolean" or variant in _DIGITS for variant in (first, second)
    ):
        return "castDataType: {integer: {}}, where true is 1"
    return None if first == second else _QUERY


def what_helps(
    source: str, field_name: str, declared: DataType, actual: DataType | None, in_query: bool
) -> str:
    """The change in a relationship for data of another type, as one clause.

    `actual` is None where declarations have no name for the type of the data.
    """
    if actual is None:
        return "no dataType names the data's type"
    found = _flow_text(actual)
    if found is None:
        found = "the one that the data has"
    declare = f"give {source} a representation with {field_name} of dataType: {found}"
    if in_query:
        return f"{declare}, and let the query convert it"
    cast = common_cast(declared, actual) or _cast_of_equal_texts(declared, actual)
    return f"{declare}, and " + (cast if cast == _QUERY else f"every representation {cast}")


def _cast_of_equal_texts(one: DataType, other: DataType) -> str:
    """The cast for types that `common_cast` has nothing for: text, floats, and equal scales."""
    variants = [DataType.variant_of(data_type) for data_type in (one, other)]
    if variants[0] in _ANY_TEXT:
        return f"castDataType: {_flow_text(other) or '{string: {}}'}"
    if variants[1] in _ANY_TEXT:
        return f"castDataType: {_flow_text(one) or '{string: {}}'}"
    if set(variants) == _FLOATING:
        return "castDataType: {double: {}}"
    wider = max((one, other), key=lambda data_type: _whole_and_fraction(data_type) or (0, 0))
    return f"castDataType: {_flow_text(wider) or '{string: {}}'}"


def _flow_text(data_type: DataType) -> str | None:
    """A type as a declaration writes it on one line; None of nested ones, which take many."""
    if data_type.decimal is not None:
        precision, scale = data_type.decimal.precision, data_type.decimal.scale
        return f"{{decimal: {{precision: {precision}, scale: {scale}}}}}"
    variant = DataType.variant_of(data_type)
    return None if variant in _NESTED else f"{{{variant}: {{}}}}"


def is_numeric(data_type: DataType) -> bool:
    """Whether it is a type of numbers."""
    return DataType.variant_of(data_type) in _NUMBERS


def _whole_and_fraction(data_type: DataType) -> tuple[int, int] | None:
    """Digits before and after the point; None of types without fixed ones."""
    if data_type.decimal is not None:
        scale = data_type.decimal.scale
        return data_type.decimal.precision - scale, scale
    digits = _DIGITS.get(DataType.variant_of(data_type))
    return None if digits is None else (digits, 0)


# One schema that reads every snapshot: the merge of types over history.

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
    """Return why a snapshot cannot be read with those around it; empty if it can.

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


# Two schemas of one output: which fields both have, and which only one of them has; pure.

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneSided:
    """A field that only one side has."""

    path: str
    type: str
    """Its type, without the parts of structs."""

    @property
    def document(self) -> JsonValue:
        return {"column": self.path, "type": self.type}


@dataclass(frozen=True, slots=True)
class Retyped:
    """A field that has another type on each side."""

    path: str
    before: str
    after: str
    is_compared: bool
    """Whether one type holds the values of both, so that they are compared."""

    @property
    def document(self) -> JsonValue:
        return {
            "column": self.path,
            "before": self.before,
            "after": self.after,
            "compared": self.is_compared,
        }


@dataclass(frozen=True, slots=True)
class CommonFields:
    """Fields common to two schemas, and fields that only one has."""

    schema: str
    """Fields whose values are compared, under the type that holds both, as `StructType.json()`."""
    added: tuple[OneSided, ...] = ()
    """Fields that only the second schema has."""
    removed: tuple[OneSided, ...] = ()
    """Fields that only the first schema has."""
    retyped: tuple[Retyped, ...] = ()
    """Fields that both have, with different types."""

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.retyped)

    @property
    def document(self) -> JsonValue:
        return {
            "added": [one.document for one in self.added],
            "removed": [one.document for one in self.removed],
            "retyped": [one.document for one in self.retyped],
        }


def common_fields(before: str, after: str) -> CommonFields:
    """Match the fields of two schemas, given as `StructType.json()` gives them."""
    matching = _Matching()
    shared = matching.structs(parse_schema(before, ""), parse_schema(after, ""), ())
    return CommonFields(
        schema_json(shared or Struct((), "")),
        tuple(matching.added),
        tuple(matching.removed),
        tuple(matching.retyped),
    )


class _Matching:
    def __init__(self) -> None:
        self.added: list[OneSided] = []
        self.removed: list[OneSided] = []
        self.retyped: list[Retyped] = []

    def structs(self, before: Struct, after: Struct, path: Path) -> Struct | None:
        """The struct of the common fields; None without any."""
        later = {field.name.casefold(): field for field in after.fields}
        fields = []
        for field in before.fields:
            inner = (*path, field.name)
            other = later.pop(field.name.casefold(), None)
            if other is None:
                self.removed.append(OneSided(path_text(inner), describe(field.type)))
                continue
            shared = self.types(field.type, other.type, inner)
            if shared is not None:
                fields.append(Field(field.name, shared, True, "{}"))
        self.added.extend(
            OneSided(path_text((*path, field.name)), describe(field.type))
            for field in later.values()
        )
        return Struct(tuple(fields), "") if fields else None

    def types(self, before: Type, after: Type, path: Path) -> Type | None:
        """The type under which values are compared; None where they are not."""
        match before, after:
            case Struct(), Struct():
                return self.structs(before, after, path)
            case Array(), Array():
                element = self.types(before.element, after.element, (*path, "element"))
                return None if element is None else Array(element, True, "")
            case Map(), Map():
                key = self.types(before.key, after.key, (*path, "key"))
                value = self.types(before.value, after.value, (*path, "value"))
                return None if key is None or value is None else Map(key, value, True, "")
        shared = merged_type(before, after)
        names = describe(before), describe(after)
        if shared is None or names[0] != names[1]:
            self.retyped.append(Retyped(path_text(path), *names, shared is not None))
        return shared


WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Characters of Unicode's property `White_Space`, all of them."""
DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Hyphens, dashes and the minus sign."""

Steps = tuple[Normalization, ...]
Key = str | tuple[str, ...] | None
"""A key as text, or the texts of one of several columns."""

CANDIDATES: tuple[Steps, ...] = (
    (Normalization.TRIM,),
    (Normalization.UPPER,),
    (Normalization.STRIP_LEADING_ZEROS,),
    (Normalization.INTEGER,),
    (Normalization.NFC,),
    (Normalization.REMOVE_DASHES,),
    (
        Normalization.TRIM,
        Normalization.NFC,
        Normalization.UPPER,
        Normalization.REMOVE_DASHES,
        Normalization.STRIP_LEADING_ZEROS,
    ),
)
"""Normalisations whose effect is measured, the simplest first; the last is for keys that differ in
several ways. LOWER makes equal what UPPER does, but for a few letters such as `ß`."""


def normalized(text: str | None, steps: Iterable[Normalization]) -> str | None:
    """Return a key's text after some steps; None is NULL, and so is what becomes empty."""
    for step in steps:
        text = _STEPS[step](text) or None if text else None
    return text


def _spelled(key: Key, steps: Steps) -> Key:
    """A key after some steps; None where a part of it is NULL then."""
    if not isinstance(key, tuple):
        return normalized(key, steps)
    parts = [part for text in key if (part := normalized(text, steps)) is not None]
    return tuple(parts) if len(parts) == len(key) else None


def _integer(text: str) -> str:
    cut = text.strip(WHITE_SPACE)
    if re.fullmatch(r"[+-]?[0-9]+(?:[.]0+)?", cut) is None:
        return ""
    digits = cut.partition(".")[0].lstrip("+-").lstrip("0") or "0"
    return f"-{digits}" if cut.startswith("-") and digits != "0" else digits


_STEPS: Mapping[Normalization, Callable[[str], str]] = MappingProxyType(
    {
        Normalization.TRIM: lambda text: text.strip(WHITE_SPACE),
        Normalization.UPPER: str.upper,
        Normalization.LOWER: str.lower,
        Normalization.STRIP_LEADING_ZEROS: lambda text: text.lstrip("0") or text[-1:],
        Normalization.INTEGER: _integer,
        Normalization.NFC: lambda text: unicodedata.normalize("NFC", text),
        Normalization.REMOVE_DASHES: lambda text: text.translate(dict.fromkeys(map(ord, DASHES))),
    }
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A normalisation under which more values of a child are among those of its parent."""

    steps: Steps
    share: float
    """Share of the child's distinct values that are found with it."""
    as_written: float
    """Share that is found without it."""


def explanations(
    child: Iterable[Key], parent: Iterable[Key], candidates: Iterable[Steps] = CANDIDATES
) -> Iterator[Explanation]:
    """The share of a child's key that is found under each normalisation.

    Keys are as the data has them, each at least once. A normalisation that makes two
    different values of the parent equal is none: it would multiply rows.
    """
    wanted, known = set(child) - {None, ""}, set(parent) - {None, ""}
    if not wanted or wanted <= known:
        return
    as_written = len(wanted & known) / len(wanted)
    for steps in candidates:
        spelled = Counter(_spelled(key, steps) for key in known)
        del spelled[None]
        if max(spelled.values(), default=0) <= 1:
            found = sum(_spelled(key, steps) in spelled for key in wanted)
            yield Explanation(steps, found / len(wanted), as_written)


def explains_more(child: Iterable[Key], parent: Iterable[Key]) -> Explanation | None:
    """The normalisation that explains most of a child's key, if one explains more than none does.

    Values are those of `explanations`.
    """
    mine, theirs = list(child), list(parent)
    best = max(explanations(mine, theirs), key=lambda one: one.share, default=None)
    if best is None or best.share <= best.as_written:
        return None

    def explained(candidates: Sequence[Steps]) -> list[float]:
        shares = {one.steps: one.share for one in explanations(mine, theirs, candidates)}
        return [shares.get(steps, 0.0) for steps in candidates]

    return replace(best, steps=needed_steps(best.steps, explained))


def needed_steps(steps: Steps, explained: Callable[[Sequence[Steps]], Sequence[float]]) -> Steps:
    """A normalisation without the steps that explain nothing: they could make keys equal later.

    `explained` gives what each of some normalisations explains.
    """
    others = [tuple(other for other in steps if other is not step) for step in steps]
    whole, *rest = explained([steps, *others])
    fewer = tuple(step for step, share in zip(steps, rest, strict=True) if share < whole)
    return fewer if fewer and explained([fewer])[0] >= whole else steps
