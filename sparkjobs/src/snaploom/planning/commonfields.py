"""Two schemas of one output: which fields both have, and which only one of them has; pure.

Fields are matched by name ignoring case, as Spark does. Where types differ and one is wider (rule
P26), values are compared as the wider one; where no type holds both, the field is left out. In
lists and maps of structs, only fields that both sides have are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.planning.fieldpaths import path_text
from snaploom.planning.schemas import (
    Array,
    Field,
    Map,
    Struct,
    Type,
    describe,
    parse_schema,
    schema_json,
)
from snaploom.planning.typemerge import merged_type

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneSided:
    """A field that only one side has."""

    path: str
    type: str
    """Its type, without the parts of structs."""

    @property
    def document(self) -> JsonValue:
        """For programs."""
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
        """For programs."""
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
        """Whether both have the same fields of the same types."""
        return not (self.added or self.removed or self.retyped)

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {
            "added": [one.document for one in self.added],
            "removed": [one.document for one in self.removed],
            "retyped": [one.document for one in self.retyped],
        }


def common_fields(before: str, after: str) -> CommonFields:
    """Match the fields of two schemas, given as `StructType.json()` gives them.

    Raises:
        ValueError: one of them is no schema.
    """
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
