"""A schema as people read it: one line a field, indented below its parent."""

from __future__ import annotations

from collections.abc import Iterator

from snaploom.planning.schemas import Array, Map, Struct, Type, describe


def schema_text(schema: Struct) -> str:
    """The fields of a schema; an array of structs shows the fields of its elements."""
    return "".join(f"{line}\n" for line in _lines(schema, 0))


def _lines(struct: Struct, depth: int) -> Iterator[str]:
    for field in struct.fields:
        yield f"{'  ' * depth}{field.name}: {describe(field.type)}"
        for inner in structs_in(field.type):
            yield from _lines(inner, depth + 1)


def structs_in(type_: Type) -> Iterator[Struct]:
    """The outermost structs of a type, inside arrays and maps too."""
    match type_:
        case Struct():
            yield type_
        case Array(element):
            yield from structs_in(element)
        case Map(key, value):
            yield from structs_in(key)
            yield from structs_in(value)
