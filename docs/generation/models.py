"""Tables of models: for every object that a document is made of, its fields and their bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from pydantic import BaseModel, JsonValue

from generation.markdown import table, without_empty
from snaploom.models.base import ONE_OF_KEYWORD, one_line
from snaploom.models.schemas import (
    MEANINGS_KEYWORD,
    ModelSchema,
    Schema,
    as_list,
    as_object,
    model_schema,
    without_null,
)

RANGES = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " members"),
    ("minProperties", "maxProperties", " keys"),
)
"""Keywords of a lower and an upper bound, and the unit of both."""


class Sections:
    """Sections of a page, one for every object that some models are made of."""

    def __init__(
        self,
        *roots: Schema,
        has_bounds: bool = True,
        others: Iterable[tuple[str, Schema]] = (),
        common: Schema | None = None,
    ) -> None:
        """Collect the definitions.

        Args:
            roots: schemas of models.
            has_bounds: whether their bounds are of interest to the reader.
            others: by page, schemas whose definitions have their sections there, and not here.
            common: a schema whose fields the roots repeat; only its own section shows them.
        """
        self._has_bounds = has_bounds
        self._others = [(page, as_object(other.get("$defs", {}))) for page, other in others]
        self._common = str((common or {}).get("title", ""))
        self._definitions: Schema = {}
        for root in (*([common] if common else []), *roots):
            self._definitions |= as_object(root.get("$defs", {}))
            self._definitions[str(root["title"])] = root

    def text(self, *first: str) -> str:
        """The sections of some definitions and all below them, in the order of the fields."""
        return "\n".join(self._section(name) for name in self._reachable(first))

    def _reachable(self, first: Sequence[str]) -> list[str]:
        found: list[str] = []
        waiting = list(first)
        while waiting:
            name = waiting.pop(0)
            if name not in found and not self._page_of(name):
                found.append(name)
                waiting = [*self._mentioned(name), *waiting]
        return found

    def _mentioned(self, name: str) -> Iterator[str]:
        fields = as_object(as_object(self._definitions[name]).get("properties", {}))
        for field in fields.values():
            source = _optional(as_object(field))
            member = source.get("items", source)
            if mentioned := reference(as_object(member)):
                yield mentioned

    def _page_of(self, name: str) -> str:
        """The other page that has the section of a definition; empty if it is on this one."""
        own = self._definitions[name]
        return next((page for page, known in self._others if known.get(name) == own), "")

    def _type(self, source: Schema) -> str:
        if name := reference(source):
            return f"[{name}]({self._page_of(name)}#{name.lower()})"
        if "const" in source:
            return f"`{source['const']}`"
        if "enum" in source:
            return " or ".join(f"`{json.dumps(value)}`" for value in as_list(source["enum"]))
        if "items" in source:
            return f"list of {self._type(as_object(source['items']))}"
        if isinstance(source.get("additionalProperties"), dict):
            return f"map of {self._type(as_object(source['additionalProperties']))}"
        return str(source["type"])

    def _section(self, name: str) -> str:
        source = as_object(self._definitions[name])
        head = f"### {name}\n\n{one_line(str(source.get('description', '')))}\n"
        if MEANINGS_KEYWORD in source:
            meanings = as_object(source[MEANINGS_KEYWORD]).items()
            rows = [[f"`{value}`", one_line(str(meaning))] for value, meaning in meanings]
            return f"{head}\n{table(['value', 'meaning'], rows)}"
        rules = "".join(f"- {rule}\n" for rule in _rules(source))
        fields = self._fields(name)
        if not fields:
            return f"{head}\nIt has no fields.\n"
        required = as_list(source.get("required", []))
        rows = [self._row(f, as_object(s), f in required) for f, s in fields.items()]
        return head + (f"\n{rules}" if rules else "") + f"\n{without_empty(self._columns(), rows)}"

    def _fields(self, name: str) -> Schema:
        fields = as_object(as_object(self._definitions[name]).get("properties", {}))
        if not self._common or name == self._common:
            return fields
        common = self._fields(self._common)
        return {field: each for field, each in fields.items() if each != common.get(field)}

    def _columns(self) -> list[str]:
        bounds = ["bounds"] if self._has_bounds else []
        return ["field", "type", "default", *bounds, "description"]

    def _row(self, name: str, field: Schema, required: bool) -> list[str]:
        source = _optional(field)
        target = self._definitions.get(reference(source) or "", {})
        description = source.get("description") or as_object(target).get("description", "")
        return [
            f"`{name}`",
            self._type(source),
            "**required**" if required else _default(field),
            *([_bounds(source)] if self._has_bounds else []),
            one_line(str(description)),
        ]


def resource_schema(model: type[BaseModel]) -> Schema:
    """The schema of what people write."""
    return model_schema(model)


def document_schema(model: type[BaseModel]) -> Schema:
    """The schema of what Snaploom writes: an instant is text in it."""
    schema = model.model_json_schema(
        by_alias=True, mode="serialization", schema_generator=ModelSchema
    )
    return cast(Schema, schema)


def reference(source: Schema) -> str | None:
    """The definition that a schema refers to."""
    return str(source["$ref"]).rpartition("/")[2] if "$ref" in source else None


def first_definition(root: Schema, field: str) -> str:
    """The definition that a field of a schema refers to."""
    found = reference(_optional(as_object(as_object(root["properties"])[field])))
    assert found is not None
    return found


def _optional(source: Schema) -> Schema:
    return without_null(source, "") if "anyOf" in source else source


def _default(field: Schema) -> str:
    """The default that a person would write; none for what is merely absent or empty."""
    value = field.get("default")
    if value is None or value in ("", [], {}) or isinstance(value, dict):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _bounds(source: Schema) -> str:
    own = [_range(source.get(low), source.get(high), unit) for low, high, unit in RANGES]
    pattern = f"`{source['pattern']}`" if "pattern" in source else ""
    members = source.get("items", source.get("additionalProperties"))
    inner = _bounds(members) if isinstance(members, dict) else ""
    return "; ".join(part for part in (*own, pattern, f"each {inner}" if inner else "") if part)


def _range(low: JsonValue, high: JsonValue, unit: str) -> str:
    if low is None and high is None:
        return ""
    if low is None:
        return f"at most {high:,}{unit}"
    if high is None:
        return f"at least {low:,}{unit}"
    return f"{low:,} to {high:,}{unit}"


def _rules(source: Schema) -> Iterator[str]:
    names = [f"`{name}`" for name in as_list(source.get(ONE_OF_KEYWORD, []))]
    if names:
        yield f"Exactly one of {', '.join(names)}."
    elif source.get("maxProperties") == 1:
        yield "Exactly one field."
    for rule in as_list(source.get("x-kubernetes-validations", [])):
        yield f"{one_line(str(as_object(rule)['message']))}."
