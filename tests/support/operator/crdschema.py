"""Judges plain data as the API server would: by a CRD's schema, list types and rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cel
from jsonschema import Draft202012Validator

from snaploom.models.schemas import cel_name


def faults(schema: dict[str, Any], data: Any) -> list[str]:
    """Everything that is wrong with the data, in words; empty when it would be stored."""
    found = [error.message for error in Draft202012Validator(strict(schema)).iter_errors(data)]
    return found or list(_broken(schema, data))  # rules are judged on data of the right form only


def strict(schema: Any) -> Any:
    """The schema with pruning as an error, so that misspelt keys of test data are seen."""
    if isinstance(schema, list):
        return [strict(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    preserved = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if schema.get("type") == "object" and "additionalProperties" not in schema and not preserved:
        result["additionalProperties"] = False
    return result


def _broken(schema: dict[str, Any], data: Any) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if cel.evaluate(rule["rule"], {"self": _escaped(data)}) is not True:
            yield rule["message"]
    yield from _repeated(schema, data)
    for child, value in _children(schema, data):
        yield from _broken(child, value)


def _repeated(schema: dict[str, Any], data: Any) -> Iterator[str]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            keys = data
        case "map":
            names = schema["x-kubernetes-list-map-keys"]
            keys = [tuple(member[name] for name in names) for member in data]
        case _:
            return
    if len(set(keys)) < len(keys):
        yield "a member of a set or map is repeated"


def _children(schema: dict[str, Any], data: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if isinstance(data, list):
        yield from ((schema["items"], member) for member in data)
    elif isinstance(data, dict) and "properties" in schema:
        yield from ((schema["properties"][name], value) for name, value in data.items())


def _escaped(data: Any) -> Any:
    if isinstance(data, list):
        return [_escaped(member) for member in data]
    if isinstance(data, dict):
        return {cel_name(name): _escaped(value) for name, value in data.items()}
    return data
