"""Merges a resource's Spark settings over the operator's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from snaploom.models.base import ApiModel, ListType
from snaploom.models.run import SparkSettings

M = TypeVar("M", bound=ApiModel)


def merged_settings(own: SparkSettings | None, settings: SparkSettings) -> SparkSettings:
    """The settings of a run: each field from the resource, else from the operator.

    Maps are merged, with the resource's values taking precedence. Lists whose members have a key
    (environment variables by name, volumes by name, mounts by path) are merged by it, members as a
    whole. Any other list of the resource replaces the operator's, unless it is empty.
    """
    return settings if own is None else _over(own, settings)


def _over(own: M, below: M) -> M:
    fields = type(own).model_fields
    keys = {
        name: next((note.keys for note in field.metadata if isinstance(note, ListType)), ())
        for name, field in fields.items()
    }
    return own.model_copy(
        update={
            name: _either(getattr(own, name), getattr(below, name), keys[name]) for name in fields
        }
    )


def _either(own: object, below: object, keys: tuple[str, ...]) -> object:
    if own is None or own == ():
        return below
    if isinstance(own, ApiModel) and isinstance(below, ApiModel):
        return _over(own, below)
    if isinstance(own, Mapping) and isinstance(below, Mapping):
        return {**below, **own}
    if keys and isinstance(own, tuple) and isinstance(below, tuple):
        return tuple({_key(member, keys): member for member in (*below, *own)}.values())
    return own


def _key(member: ApiModel, keys: tuple[str, ...]) -> tuple[object, ...]:
    written = member.dump()
    return tuple(written[key] for key in keys)
