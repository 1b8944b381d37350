"""Metadata of Kubernetes objects, and typed access to fields of raw objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom_operator.objects import JsonObject

_DIGITS = 20
"""Digits that no number of 64 bits has; Python refuses to read thousands."""


@dataclass(frozen=True)
class Metadata:
    """The metadata of an object; missing fields are empty."""

    name: str
    namespace: str
    """Empty for what has none."""
    uid: str
    resource_version: str
    generation: int
    """0 for kinds that have none."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    is_deleting: bool

    @classmethod
    def of(cls, stored: JsonObject) -> Metadata:
        """The metadata of an object as the API server writes it."""
        metadata = metadata_of(stored)
        generation = metadata.get("generation")
        return cls(
            name=text_in(metadata, "name"),
            namespace=text_in(metadata, "namespace"),
            uid=text_in(metadata, "uid"),
            resource_version=text_in(metadata, "resourceVersion"),
            generation=generation if isinstance(generation, int) else 0,
            labels=_texts(mapping_in(metadata, "labels")),
            annotations=_texts(mapping_in(metadata, "annotations")),
            finalizers=tuple(str(name) for name in _list_in(metadata, "finalizers")),
            is_deleting=bool(metadata.get("deletionTimestamp")),
        )


def metadata_of(stored: JsonObject) -> JsonObject:
    """The metadata of an object; empty where it has none."""
    return mapping_in(stored, "metadata")


def labels_of(stored: JsonObject) -> JsonObject:
    """The labels of an object; empty where it has none."""
    return mapping_in(metadata_of(stored), "labels")


def managers_of(stored: JsonObject, path: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the field managers of a field."""
    found = []
    *above, last = (f"f:{name}" for name in path)
    for entry in objects_in(metadata_of(stored), "managedFields"):
        owned = mapping_in(entry, "fieldsV1")
        for name in above:
            owned = mapping_in(owned, name)
        if last in owned:
            found.append(text_in(entry, "manager"))
    return tuple(found)


def mapping_in(stored: JsonObject, key: str) -> JsonObject:
    """The mapping under a key; empty when there is none."""
    value = stored.get(key)
    return value if isinstance(value, Mapping) else {}


def objects_in(stored: JsonObject, key: str) -> list[JsonObject]:
    """The mappings in the list under a key; empty when there is none."""
    return [item for item in _list_in(stored, key) if isinstance(item, Mapping)]


def text_in(stored: JsonObject, key: str) -> str:
    """The text under a key; empty when there is none."""
    value = stored.get(key)
    return value if isinstance(value, str) else ""


def number_of(text: str) -> int:
    """The whole number of 64 bits that a text is; -1 for any other text."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else -1


def _list_in(stored: JsonObject, key: str) -> Iterable[JsonValue]:
    value = stored.get(key)
    return value if isinstance(value, list) else ()


def _texts(values: JsonObject) -> Mapping[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}
