"""From a model to a structural OpenAPI v3 schema, as a CustomResourceDefinition wants it.

Pydantic writes JSON Schema; Kubernetes takes a dialect that has no references, no unions and no
`additionalProperties` beside `properties`. Each keyword is either translated, kept or dropped on
purpose; one that is in none of the lists raises, so that nothing is lost silently.

Three things are on purpose unlike the usual generators. There are no defaults: the API server
would write them into the stored object, which GitOps tools see as drift; the description contains
them instead, and models fill them in. There is no `nullable`: the API server prunes nulls, which
means the same as leaving the field out. And a data type inside a data type is an object with one
property of any form, because a structural schema cannot refer to itself; the webhook and the
parser look at every level (rule R17).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import cast

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from snaploom.models.attributedocs import field_docs, member_docs, one_line
from snaploom.models.base import ONE_OF_KEYWORD
from snaploom.models.shortforms import TEXT_KEYWORD

Schema = dict[str, JsonValue]

MEANINGS_KEYWORD = "x-snaploom-meanings"
"""Keyword of the models' JSON Schemas that holds the meaning of each value of an enum."""


class UnknownConstruct(Exception):
    """A model uses something of which this converter does not know the Kubernetes form."""


class ModelSchema(GenerateJsonSchema):
    """Pydantic's generator, which also emits the meanings of fields and enum values."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of a model, with the meaning of each field."""
        result = super().model_schema(schema)
        model = schema["cls"]
        for name, text in field_docs(model).items():
            result["properties"][model.model_fields[name].alias or name]["description"] = text
        return result

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """The schema of an enum, with the meaning of each value."""
        result = super().enum_schema(schema)
        result[MEANINGS_KEYWORD] = member_docs(schema["cls"])
        return result


def model_schema(model: type[BaseModel]) -> Schema:
    """The JSON Schema (draft 2020-12) of a model, as pydantic sees it, with our own keywords."""
    return cast(
        Schema,
        model.model_json_schema(by_alias=True, mode="validation", schema_generator=ModelSchema),
    )


def structural_schema(model: type[BaseModel], only: Collection[str] | None = None) -> Schema:
    """The structural OpenAPI v3 schema of a model.

    `only` has the properties (outside names) to convert; omitted, all. Kubernetes itself describes
    those of a resource other than spec and status.

    Raises:
        UnknownConstruct: the model uses what has no Kubernetes form here, or lacks a description,
            a bound or a list type; the message names the field.
    """
    source = model_schema(model)
    if only is not None:
        properties = as_object(source["properties"])
        source["properties"] = {name: properties[name] for name in only}
    return _Converter(as_object(source.get("$defs", {}))).convert(source, model.__name__)


class _Converter:
    """Converts one model's schema; knows its definitions and the references it is inside of."""

    def __init__(self, definitions: Mapping[str, JsonValue]) -> None:
        self._definitions = definitions
        self._inside: list[str] = []

    def convert(self, source: Schema, path: str) -> Schema:
        if "$ref" in source:
            return self._convert_reference(source, path)
        if "anyOf" in source:
            return self.convert(without_null(source, path), path)
        result: Schema = {}
        for keyword, value in source.items():
            if keyword in _KEPT:
                result[keyword] = value
            elif keyword in _TRANSLATED:
                result.update(_TRANSLATED[keyword](self, value, path))
            elif keyword not in _DROPPED:
                raise UnknownConstruct(f"{path}: no structural form of {keyword} is known")
        rules = one_of_rules(source) + as_list(source.get("x-kubernetes-validations", []))
        if rules:
            result["x-kubernetes-validations"] = rules
        if TEXT_KEYWORD in source:
            result = _or_text(result, as_object(source[TEXT_KEYWORD]))
        if "description" in source:
            result["description"] = describe(source)
        _refuse_unbounded(result, path)
        return dict(sorted(result.items(), key=_place))

    def _convert_reference(self, source: Schema, path: str) -> Schema:
        name = str(source["$ref"]).rpartition("/")[2]
        target = as_object(self._definitions[name])
        if name in self._inside and target.get("maxProperties") == 1:
            return _any_variant(target | source)
        if self._inside.count(name) > 1:
            raise UnknownConstruct(f"{path}: {name} is inside itself without an end")
        self._inside.append(name)
        try:
            own = {key: value for key, value in source.items() if key != "$ref"}
            return self.convert(target | own, path)
        finally:
            self._inside.pop()

    def _convert_properties(self, value: JsonValue, path: str) -> Schema:
        properties: Schema = {}
        for name, source in as_object(value).items():
            converted = self.convert(as_object(source), f"{path}.{name}")
            if "description" not in converted:
                raise UnknownConstruct(f"{path}.{name}: a field without description")
            properties[name] = converted
        # An empty map would be dropped by the API server, and every apply would show a difference.
        return {"properties": properties} if properties else {}

    def _convert_items(self, value: JsonValue, path: str) -> Schema:
        return {"items": self.convert(as_object(value), f"{path}[]")}

    def _convert_additional(self, value: JsonValue, path: str) -> Schema:
        if value is False:  # implied by `properties`: the API server prunes what they do not name
            return {}
        return {"additionalProperties": self.convert(as_object(value), f"{path}{{}}")}

    def _convert_const(self, value: JsonValue, path: str) -> Schema:
        return {"enum": [value]}

    def _convert_exclusive_minimum(self, value: JsonValue, path: str) -> Schema:
        return {"minimum": value, "exclusiveMinimum": True}

    def _convert_exclusive_maximum(self, value: JsonValue, path: str) -> Schema:
        return {"maximum": value, "exclusiveMaximum": True}


_KEPT = frozenset(
    [
        "type", "enum", "format", "pattern", "required",
        "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
        "minProperties", "maxProperties",
        "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    ]
)  # fmt: skip
_TRANSLATED: dict[str, Callable[[_Converter, JsonValue, str], Schema]] = {
    "properties": _Converter._convert_properties,
    "items": _Converter._convert_items,
    "additionalProperties": _Converter._convert_additional,
    "const": _Converter._convert_const,
    "exclusiveMinimum": _Converter._convert_exclusive_minimum,
    "exclusiveMaximum": _Converter._convert_exclusive_maximum,
}
_DROPPED = frozenset(
    [
        "$defs",  # inlined
        TEXT_KEYWORD,  # becomes what `_or_text` adds
        "title",  # the name again
        "default",  # in the description
        "description", "x-kubernetes-validations", ONE_OF_KEYWORD, MEANINGS_KEYWORD,  # added above
        "writeOnly",  # of secrets; Kubernetes has no such thing
        "propertyNames",  # Kubernetes cannot bound keys; the parser does, and maps are bounded
    ]
)  # fmt: skip
_ORDER = (
    "description", "type", "format", "enum", "pattern", "required", "properties", "items",
    "additionalProperties",
)  # fmt: skip


def _place(entry: tuple[str, JsonValue]) -> tuple[int, str]:
    keyword = entry[0]
    return (_ORDER.index(keyword) if keyword in _ORDER else len(_ORDER), keyword)


def _any_variant(source: Schema) -> Schema:
    """An object with one property of any form: an `one_of_by_count` model inside itself."""
    form: Schema = {
        "type": "object",
        "maxProperties": 1,
        "minProperties": 1,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    text = source.get(TEXT_KEYWORD)
    result = form if text is None else _or_text(form, as_object(text))
    return {"description": describe(source), **result}


def _or_text(form: Schema, text: Schema) -> Schema:
    """An object that may be a text as well: a schema without a type.

    `anyOf` must not name types in a structural schema, and each keyword looks at values of its own
    kind only: `pattern` at texts, `properties` and `required` at objects. The impossible bounds
    refuse numbers and lists. CEL knows no such field and nothing below it; what its rules would
    refuse, unknown keys and booleans are refused by the webhook and by every reader of the object.
    """
    result = {key: form[key] for key in form if key != "type"} | {
        "x-kubernetes-preserve-unknown-fields": True,
        "pattern": text["pattern"],
        "maxLength": text["maxLength"],
        "minimum": 1,
        "maximum": 0,
        "maxItems": 0,
        "anyOf": text["anyOf"],
        **as_object(text["more"]),
    }
    return as_object(_without_rules(result))


def _without_rules(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [_without_rules(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema.items()
    return {key: _without_rules(each) for key, each in kept if key != "x-kubernetes-validations"}


def _refuse_unbounded(schema: Schema, path: str) -> None:
    """Refuse schemas that the API server could not cost or merge (rule R17)."""
    missing = None
    match schema.get("type"):
        case "string" if not {"maxLength", "enum"} & schema.keys():
            missing = "maxLength"
        case "array" if "maxItems" not in schema:
            missing = "maxItems"
        case "array" if "x-kubernetes-list-type" not in schema:
            missing = "a list type"
        case "object" if "additionalProperties" in schema and "maxProperties" not in schema:
            missing = "maxProperties"
        case None if "x-kubernetes-preserve-unknown-fields" not in schema:
            missing = "a type"
    if missing:
        raise UnknownConstruct(f"{path}: {missing} is missing")


def without_null(source: Schema, path: str) -> Schema:
    """The schema of `X | None` as that of X, which may be left out.

    Raises:
        UnknownConstruct: it is a union of more than one thing and null.
    """
    members = [as_object(member) for member in as_list(source["anyOf"])]
    given = [member for member in members if member != {"type": "null"}]
    if len(given) != 1:
        raise UnknownConstruct(f"{path}: a union of {len(given)} things")
    return given[0] | {key: value for key, value in source.items() if key != "anyOf"}


def describe(source: Schema) -> str:
    """The description of a field, with the meanings of its enum values and its default."""
    parts = [one_line(str(source.get("description", "")))]
    meanings = as_object(source.get(MEANINGS_KEYWORD, {}))
    parts += [f"{value}: {meaning}" for value, meaning in meanings.items()]
    default = source.get("default")
    if isinstance(default, bool | int | float) or (isinstance(default, str) and default):
        parts.append(f"Default: {default if isinstance(default, str) else json.dumps(default)}.")
    return " ".join(part for part in parts if part)


def one_of_rules(source: Schema) -> list[JsonValue]:
    """The rule that exactly one of some properties is given, as the API server evaluates it."""
    names = [str(name) for name in as_list(source.get(ONE_OF_KEYWORD, []))]
    if not names:
        return []
    count = " + ".join(f"(has(self.{cel_name(name)}) ? 1 : 0)" for name in names)
    return [{"rule": f"{count} == 1", "message": f"expected exactly one of {', '.join(names)}"}]


_CEL_RESERVED = frozenset(
    [
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    ]
)  # fmt: skip


def cel_name(name: str) -> str:
    """The name of a property as an expression must write it; reserved words are escaped."""
    return f"__{name}__" if name in _CEL_RESERVED else name


def as_object(value: JsonValue) -> Schema:
    """The same value, which is an object by construction."""
    assert isinstance(value, dict)
    return value


def as_list(value: JsonValue) -> list[JsonValue]:
    """The same value, which is a list by construction."""
    assert isinstance(value, list)
    return value
