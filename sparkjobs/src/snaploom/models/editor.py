"""A JSON Schema (draft 2020-12) for editors: completion, hover text and marks in YAML files.

One schema serves files of every kind: it branches on `kind`, so that an editor explains the kind
at hand instead of listing six failures. Unlike CRDs it refuses keys that no model has, which marks
a misspelt key while it is typed, and it looks into data types at any depth. In one point it is
stricter than the parser: a key without a value (null) is marked, since it is nearly always
unfinished. A document with several resources is checked one resource at a time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from snaploom.localfiles import write_file
from snaploom.models.base import ONE_OF_KEYWORD
from snaploom.models.kinds import KINDS
from snaploom.models.schema import (
    MEANINGS_KEYWORD,
    ModelSchema,
    Schema,
    as_list,
    as_object,
    describe,
    without_null,
)
from snaploom.models.shortforms import TEXT_KEYWORD

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


def check_schemas(folder: Path) -> list[str]:
    """Differences between a folder and the models, as sentences; empty without any."""
    path = folder / EDITOR_SCHEMA_FILE
    if not path.is_file():
        return [f"{EDITOR_SCHEMA_FILE} is missing"]
    if path.read_text(encoding="utf-8") != schema_text():
        return [f"{EDITOR_SCHEMA_FILE} differs from the models"]
    return []


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
        return _or_text(_editor_form(form), as_object(source[TEXT_KEYWORD]))
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


def _or_text(form: Schema, text: Schema) -> Schema:
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
