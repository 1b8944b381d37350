"""Schemas of models: CustomResourceDefinitions, and JSON Schema for editors."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import cast

import yaml
from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from snaploom.localfiles import write_file
from snaploom.models.base import ONE_OF_KEYWORD, field_docs, member_docs, one_line
from snaploom.models.common import GROUP, VERSION
from snaploom.models.kinds import CATEGORY, KINDS, Kind, PrinterColumn
from snaploom.models.shortforms import TEXT_KEYWORD

# From a model to a structural OpenAPI v3 schema, as a CustomResourceDefinition wants it.

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
    "const": lambda _, value, path: {"enum": [value]},
    "exclusiveMinimum": lambda _, value, path: {"minimum": value, "exclusiveMinimum": True},
    "exclusiveMaximum": lambda _, value, path: {"maximum": value, "exclusiveMaximum": True},
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
    """The schema of `X | None` as that of X, which may be left out."""
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


# CustomResourceDefinitions of the six kinds, generated from their models.

_HEADER = "# Generated from the models of snaploom; do not edit. `make generate` writes it anew.\n"


class _WithoutAliases(yaml.SafeDumper):
    """Writes equal parts out in full: anchors in a CRD help nobody."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def crd(kind: Kind) -> Schema:
    """The CustomResourceDefinition of a kind, as plain data."""
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": _root_schema(kind)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(kind)},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": [kind.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},  # the default: what comes back is what we wrote
            "versions": [version],
        },
    }


def crd_name(kind: Kind) -> str:
    """Name of a kind's CustomResourceDefinition, which is also that of its file."""
    return f"{kind.plural}.{GROUP}"


def crd_text(kind: Kind) -> str:
    """The CustomResourceDefinition of a kind as YAML; equal models give equal text."""
    document = yaml.dump(
        crd(kind), Dumper=_WithoutAliases, sort_keys=False, width=100, allow_unicode=True
    )
    return _HEADER + document


def write_crds(folder: Path) -> list[Path]:
    """Write one file a kind; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in KINDS:
        path = folder / _file_name(kind)
        write_file(path, crd_text(kind))
        written.append(path)
    return written


def check_crds(folder: Path) -> list[str]:
    """Differences between a folder and the models, one sentence a file; empty without any."""
    drift = []
    expected = {_file_name(kind): crd_text(kind) for kind in KINDS}
    for name, text in expected.items():
        path = folder / name
        if not path.is_file():
            drift.append(f"{name} is missing")
        elif path.read_text(encoding="utf-8") != text:
            drift.append(f"{name} differs from the models")
    unknown = {path.name for path in folder.glob("*.yaml")} - expected.keys()
    return drift + [f"{name} belongs to no kind" for name in sorted(unknown)]


def _file_name(kind: Kind) -> str:
    return f"{crd_name(kind)}.yaml"


def _root_schema(kind: Kind) -> Schema:
    fields = as_object(structural_schema(kind.model, ("spec", "status"))["properties"])
    return {
        "description": one_line(kind.model.__doc__ or ""),
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"{GROUP}/{VERSION}.", "type": "string"},
            "kind": {"description": f"{kind.name}.", "type": "string"},
            "metadata": {"type": "object"},  # the API server describes it, and forbids us to
            "spec": fields["spec"],
            "status": fields["status"],
        },
    }


def _column(column: PrinterColumn) -> JsonValue:
    result: Schema = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        result["priority"] = column.priority
    return result


# A JSON Schema (draft 2020-12) for editors: completion, hover text and marks in YAML files.

EDITOR_SCHEMA_FILE = "snaploom.schema.json"
"""Name of the file that `write_schemas` writes."""

_ALWAYS_WRITTEN = ["apiVersion", "kind", "metadata", "spec"]


def editor_schema() -> Schema:
    """The schema of one resource of any kind."""
    _, document = models_json_schema(
        [(kind.model, "validation") for kind in KINDS], schema_generator=ModelSchema
    )
    sources = as_object(cast(JsonValue, document["$defs"]))
    definitions = {name: _editor_form(as_object(source)) for name, source in sources.items()}
    for kind in KINDS:
        definitions[kind.model.__name__]["required"] = list[JsonValue](_ALWAYS_WRITTEN)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Snaploom",
        "description": "One resource of Snaploom, of any kind.",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": [kind.name for kind in KINDS]}},
        "allOf": [_branch(kind.name, kind.model.__name__) for kind in KINDS],
        "$defs": cast(Schema, definitions),
    }


def schema_text() -> str:
    """The schema as JSON; equal models give equal text."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write the schema into a folder; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / EDITOR_SCHEMA_FILE
    write_file(path, schema_text())
    return [path]


def _branch(kind: str, definition: str) -> JsonValue:
    return {
        "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
        "then": {"$ref": f"#/$defs/{definition}"},
    }


def _editor_form(source: Schema) -> Schema:
    """A schema as editors want it, with everything below it."""
    if "anyOf" in source:
        source = without_null(source, "")
    if TEXT_KEYWORD in source:
        form = {key: value for key, value in source.items() if key != TEXT_KEYWORD}
        return _mapping_or_text(_editor_form(form), as_object(source[TEXT_KEYWORD]))
    result: Schema = {}
    for keyword, value in source.items():
        match keyword:
            case "properties":
                fields = as_object(value).items()
                result[keyword] = {name: _editor_form(as_object(field)) for name, field in fields}
            case "items" | "additionalProperties" if isinstance(value, dict):
                result[keyword] = _editor_form(value)
            case "title" | "description":
                continue
            case "default" if value is None or isinstance(value, dict | list):
                continue
            case "x-kubernetes-list-type":
                result |= {"uniqueItems": True} if value == "set" else {}
            case _ if keyword not in _KUBERNETES_ONLY:
                result[keyword] = value
    if ONE_OF_KEYWORD in source:
        result["oneOf"] = [{"required": [name]} for name in as_list(source[ONE_OF_KEYWORD])]
    without_default = {key: value for key, value in source.items() if key != "default"}
    if text := describe(without_default):
        result["description"] = text
    return result


def _mapping_or_text(form: Schema, text: Schema) -> Schema:
    """A mapping, or a text of the short form.

    A condition, because editors explain what breaks one better than what meets no alternative.
    """
    own = {key: value for key, value in form.items() if key in ("description", "default")}
    long = {key: value for key, value in form.items() if key not in own}
    short: Schema = {"pattern": text["pattern"], "maxLength": text["maxLength"]}
    short["patternErrorMessage"] = f"expected a text such as {text['examples']}, or a mapping"
    return {**own, "if": {"type": "string"}, "then": short, "else": long}


_KUBERNETES_ONLY = frozenset(
    ["x-kubernetes-list-map-keys", "x-kubernetes-validations", ONE_OF_KEYWORD, MEANINGS_KEYWORD]
)
