"""Expectations of a place inside a model: its names, its form, and other places of a name."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Union

from pydantic import BaseModel

from snaploom.models.base import ApiModel

Target = type[ApiModel] | None
"""The model that a place holds; None for anything else."""

_NAMED = 6
"""Fields or values that a form names before it ends with `...`."""
_DEEPEST = 10
"""Levels of fields that are searched for a name; no kind has more without going round."""


@lru_cache(maxsize=4096)
def allowed_names(model: type[ApiModel], loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """Names of the fields at a place inside a model; empty where any name is allowed."""
    target = target_at(model, loc)
    return () if target is None else tuple(name for name, _ in fields_of(target))


@lru_cache(maxsize=4096)
def target_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> Target:
    """The model at a place inside a model; None where there is none."""
    found = _unwrapped(_annotation_at(model, loc))
    return found if isinstance(found, type) and issubclass(found, ApiModel) else None


@lru_cache(maxsize=4096)
def form_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> str:
    """The forms allowed at a place, in a few words; empty where it has no short form."""
    found = _unwrapped(_annotation_at(model, loc))
    if isinstance(found, type):
        return _form_of(found)
    origin = typing.get_origin(found)
    if origin is tuple:
        return "a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping of names to values"
    return ""


def _form_of(found: type) -> str:
    if issubclass(found, Enum):
        return f"one of {_some([str(each.value) for each in found])}"
    if issubclass(found, ApiModel):
        if found.one_of:
            return f"a mapping with one of {_some(list(found.one_of))}"
        required = [name for name, is_required in fields_of(found) if is_required]
        named = required or [name for name, _ in fields_of(found)]
        return f"a mapping with {_some(named)}" if named else "an empty mapping, {}"
    return {str: "text", int: "a whole number", bool: "true or false", float: "a number"}.get(
        found, ""
    )


def _some(names: list[str]) -> str:
    more = ", ..." if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


@lru_cache(maxsize=1024)
def elsewhere(model: type[ApiModel], name: str) -> str:
    """The first place of a kind's spec that has a field of a name; empty where there is none."""
    return next(_places(model, name), "")


def _places(model: type[ApiModel], name: str) -> Iterator[str]:
    """Places of a name, those of the fewest steps first."""
    waiting: list[tuple[str, Any, tuple[type, ...]]] = [
        ("spec", _annotation_at(model, ("spec",)), ())
    ]
    while waiting:
        path, annotation, inside = waiting.pop(0)
        target, path = _inner(annotation, path)
        if target is None or target in inside or len(inside) >= _DEEPEST:
            continue
        for alias, field in _annotated(target):
            if alias == name:
                yield f"{path}.{alias}"
            waiting.append((f"{path}.{alias}", field, (*inside, target)))


def _inner(annotation: Any, path: str) -> tuple[Target, str]:
    """The model in an annotation, or in the list that it is, with its path."""
    found = _unwrapped(annotation)
    if typing.get_origin(found) is tuple:
        return _inner(typing.get_args(found)[0], f"{path}[]")
    is_model = isinstance(found, type) and issubclass(found, ApiModel)
    return (found, path) if is_model else (None, path)


def fields_of(model: type[ApiModel]) -> Iterator[tuple[str, bool]]:
    """Outside names of the fields of a model, and whether they are required."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field.is_required()


def _annotated(model: type[ApiModel]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field.annotation


def _annotation_at(model: type[ApiModel], loc: tuple[str | int, ...]) -> Any:
    place: Any = model
    for segment in loc:
        place = _step(place, segment)
    return place


def _step(place: Any, segment: str | int) -> Any:
    target = _unwrapped(place)
    if isinstance(target, type) and issubclass(target, BaseModel):
        for name, field in target.model_fields.items():
            if (field.alias or name) == segment:
                return field.annotation
        return None
    arguments = typing.get_args(target)
    origin = typing.get_origin(target)
    if origin is tuple and arguments:
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        return arguments[1]
    return None


def _unwrapped(annotation: Any) -> Any:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrapped(typing.get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        return _unwrapped(members[0]) if len(members) == 1 else annotation
    return annotation
