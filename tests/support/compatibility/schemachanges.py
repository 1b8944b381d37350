"""Which changes of a JSON Schema break those who rely on it.

A schema describes what users write (they rely on it being accepted), what they read (they rely on
its fields), or what is both: the status of a resource is stored by one version, read by the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pydantic import JsonValue

Schema = Mapping[str, JsonValue]


class Use(Enum):
    """How users rely on a document."""

    WRITTEN = "written"
    READ = "read"
    STORED = "stored"
    """Written by one version, and read by another one and by users."""

    @property
    def is_written(self) -> bool:
        return self is not Use.READ

    @property
    def is_read(self) -> bool:
        return self is not Use.WRITTEN


@dataclass(frozen=True)
class Sides:
    """A place in both schemas."""

    before: Schema
    after: Schema
    path: str
    use: Use
    roots: tuple[Schema, Schema]
    """Where references are looked up."""
    followed: frozenset[tuple[str, str]] = frozenset()
    """Pairs of references on the way here: recursion ends there."""

    def at(self, before: JsonValue, after: JsonValue, step: str) -> Sides:
        return replace(self, before=_schema(before), after=_schema(after), path=self.path + step)


UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
FIXED = ("pattern", "format", "multipleOf", "not", "uniqueItems")
"""Keywords that refuse more wherever they change, unless they go."""
STEADY = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
"""Keywords by which others merge: any change is another meaning."""
RULES = "x-kubernetes-validations"
PRESERVED = "x-kubernetes-preserve-unknown-fields"
ALTERNATIVES = ("anyOf", "oneOf")


def schema_changes(before: Schema, after: Schema, use: Use, path: str = "") -> Iterator[str]:
    """Every change that breaks users, as `place: what`.

    Args:
        before: the schema of a release.
        after: the schema of today.
        use: how users rely on it.
        path: where the schema stands, for the messages.
    """
    yield from _changes(Sides(before, after, path, use, (before, after)))


def _changes(sides: Sides) -> Iterator[str]:
    named = (str(sides.before.get("$ref", "")), str(sides.after.get("$ref", "")))
    if any(named):
        if named in sides.followed:
            return
        before, after = (
            _resolved(schema, root)
            for schema, root in zip((sides.before, sides.after), sides.roots, strict=True)
        )
        sides = replace(sides, before=before, after=after, followed=sides.followed | {named})
    if sides.before == sides.after and not any(named):
        yield from _inside(sides)
        return
    for finder in (_types, _values, _bounds, _fixed, _steady, _rules, _alternatives, _inside):
        yield from finder(sides)


def _types(sides: Sides) -> Iterator[str]:
    before, after = _type_names(sides.before), _type_names(sides.after)
    if sides.use.is_written and after and not (before and _covers(after, before)):
        yield f"{sides.path}: type narrowed from {_list(before)} to {_list(after)}"
    elif sides.use.is_read and before and not (after and _covers(before, after)):
        yield f"{sides.path}: type changed from {_list(before)} to {_list(after)}"


def _type_names(schema: Schema) -> frozenset[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return frozenset({"integer", "string"})
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared] if declared else []
    more = {"null"} if schema.get("nullable") else set()
    return frozenset(str(name) for name in names) | more


def _covers(wide: frozenset[str], narrow: frozenset[str]) -> bool:
    return all(name in wide or (name == "integer" and "number" in wide) for name in narrow)


def _values(sides: Sides) -> Iterator[str]:
    before, after = _allowed(sides.before), _allowed(sides.after)
    if not sides.use.is_written or after is None:
        return
    if before is None:
        yield f"{sides.path}: only some values are allowed now"
        return
    for value in sorted(before - after):
        yield f"{sides.path}: value {value} removed"


def _allowed(schema: Schema) -> frozenset[str] | None:
    if "const" in schema:
        return frozenset({str(schema["const"])})
    values = schema.get("enum")
    return frozenset(map(str, values)) if isinstance(values, list) else None


def _bounds(sides: Sides) -> Iterator[str]:
    if not sides.use.is_written:
        return
    for keywords, sign in ((UPPER, 1), (LOWER, -1)):
        for keyword in keywords:
            before, after = sides.before.get(keyword), sides.after.get(keyword)
            if not isinstance(after, int | float):
                continue
            if not isinstance(before, int | float):
                if keyword.startswith("min") and after <= 0 and keyword != "minimum":
                    continue
                yield f"{sides.path}: {keyword} {after} added"
            elif (after - before) * sign < 0:
                yield f"{sides.path}: {keyword} narrowed from {before} to {after}"


def _fixed(sides: Sides) -> Iterator[str]:
    for keyword in FIXED:
        before, after = sides.before.get(keyword), sides.after.get(keyword)
        refuses = sides.use.is_written and after not in (None, False, before)
        misleads = sides.use.is_read and keyword == "format" and before not in (None, after)
        if refuses or misleads:
            yield f"{sides.path}: {keyword} changed from {before} to {after}"


def _steady(sides: Sides) -> Iterator[str]:
    for keyword in STEADY:
        before, after = sides.before.get(keyword), sides.after.get(keyword)
        if before != after:
            yield f"{sides.path}: {keyword} changed from {before} to {after}"
    if sides.use.is_written and "default" in sides.before:
        before, after = sides.before["default"], sides.after.get("default")
        if before != after:
            yield f"{sides.path}: default changed from {before} to {after}"
    if sides.before.get(PRESERVED) and not sides.after.get(PRESERVED):
        yield f"{sides.path}: unknown fields are dropped now"


def _rules(sides: Sides) -> Iterator[str]:
    if not sides.use.is_written:
        return
    before = {str(_schema(rule).get("rule")) for rule in _items(sides.before.get(RULES))}
    for rule in _items(sides.after.get(RULES)):
        text = str(_schema(rule).get("rule"))
        if text not in before:
            yield f"{sides.path}: rule added: {text}"


def _alternatives(sides: Sides) -> Iterator[str]:
    for keyword in ALTERNATIVES:
        before, after = _items(sides.before.get(keyword)), _items(sides.after.get(keyword))
        if sides.use.is_written and after:
            if not before:
                yield f"{sides.path}: {keyword} added"
            for number, each in enumerate(before):
                if not _is_covered(sides, each, after, swapped=False):
                    yield f"{sides.path}: alternative {number} of {keyword} removed or narrowed"
        if sides.use.is_read and before:
            for number, each in enumerate(after):
                if not _is_covered(sides, each, before, swapped=True):
                    yield f"{sides.path}: alternative {number} of {keyword} added or widened"
    before, after = _items(sides.before.get("allOf")), _items(sides.after.get("allOf"))
    if sides.use.is_written and any(each not in before for each in after):
        yield f"{sides.path}: allOf has more conditions"


def _is_covered(
    sides: Sides, alternative: JsonValue, others: Sequence[JsonValue], *, swapped: bool
) -> bool:
    return any(
        not [*_changes(sides.at(*((o, alternative) if swapped else (alternative, o)), ""))]
        for o in others
    )


def _inside(sides: Sides) -> Iterator[str]:
    yield from _properties(sides)
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        before, after = sides.before.get(keyword), sides.after.get(keyword)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _changes(sides.at(before, after, step))
            continue
        was_open = before is True or (before is None and keyword == "items")
        if sides.use.is_written and was_open and isinstance(after, dict) and after:
            yield f"{sides.path}{step}: not everything is allowed now"
    closed = sides.after.get("additionalProperties") is False
    if sides.use.is_written and closed and sides.before.get("additionalProperties") is not False:
        yield f"{sides.path}: unknown fields are refused now"


def _properties(sides: Sides) -> Iterator[str]:
    before, after = (_schema(schema.get("properties")) for schema in (sides.before, sides.after))
    for name, schema in before.items():
        if name not in after:
            yield f"{sides.path}.{name}: removed"
        else:
            yield from _changes(sides.at(schema, after[name], f".{name}"))
    was, now = (
        {str(name) for name in _items(schema.get("required"))}
        for schema in (sides.before, sides.after)
    )
    if sides.use.is_written:
        for name in sorted(now - was):
            if "default" not in _schema(after.get(name)):
                yield f"{sides.path}.{name}: required now"
    if sides.use.is_read:
        for name in sorted((was - now) & after.keys()):
            yield f"{sides.path}.{name}: may be absent now"


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that a reference leads to; keywords beside the reference hold too."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found: JsonValue = dict(root)
    for step in reference.removeprefix("#/").split("/"):
        found = _schema(found)[step]
    rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {**_resolved(_schema(found), root), **rest}


def _schema(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _list(names: frozenset[str]) -> str:
    return " or ".join(sorted(names)) or "anything"
