"""Resources as YAML documents."""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml
from pydantic import JsonValue

from snaploom.models.common import Resource

_READ_OTHERWISE = re.compile(
    r"[yYnN]|[+-]?(?:0[xXoObB][0-9A-Fa-f]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
"""Texts without `_` that one version of YAML reads as texts, another one as something else."""


class TextDumper(yaml.SafeDumper):
    """Writes texts so that every version of YAML reads texts."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _READ_OTHERWISE.fullmatch(text.replace("_", "")) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


TextDumper.add_representer(str, _represent_text)


def to_yaml(resources: Iterable[Resource]) -> str:
    """Resources as YAML documents, with the fields given and without defaults.

    Of a password in plain text (`fromPlaintext`) only asterisks are written.
    """
    return "---\n".join(
        yaml.dump(_document(each), Dumper=TextDumper, sort_keys=False, allow_unicode=True)
        for each in resources
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
