"""Resources as YAML documents."""

from __future__ import annotations

from collections.abc import Iterable

import yaml
from pydantic import JsonValue

from snaploom.models.common import Resource


def to_yaml(resources: Iterable[Resource]) -> str:
    """Resources as YAML documents, with the fields given and without defaults.

    Of a password in plain text (`fromPlaintext`) only asterisks are written.
    """
    return "---\n".join(
        yaml.safe_dump(_document(each), sort_keys=False, allow_unicode=True) for each in resources
    )


def _document(resource: Resource) -> JsonValue:
    given: dict[str, JsonValue] = resource.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_unset=True, exclude={"status"}
    )
    head: dict[str, JsonValue] = {"apiVersion": resource.api_version, "kind": resource.kind}
    metadata = given.get("metadata")
    if isinstance(metadata, dict):
        given["metadata"] = {key: value for key, value in metadata.items() if value}
    return {**head, **given}
