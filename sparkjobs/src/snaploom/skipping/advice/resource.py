"""Advice as a SkippingIndex, ready to apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from pydantic import JsonValue

from snaploom.loading.load import load
from snaploom.models.common import API_VERSION
from snaploom.models.finding import InvalidDeclarations, errors_of
from snaploom.skipping.core.definition import IndexDefinition, Target


def resource_yaml(target: Target, indexes: Sequence[IndexDefinition], location: str) -> str:
    """The resource as YAML, which the loader of resources accepts.

    Raises:
        InvalidDeclarations: it would not be accepted, such as for a name that is too long.
    """
    document: JsonValue = {
        "apiVersion": API_VERSION,
        "kind": "SkippingIndex",
        "metadata": {"name": _name(target)},
        "spec": {
            "target": _target(target),
            "indexes": [_index(index) for index in indexes],
            "store": {"parquet": {"location": location}},
        },
    }
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    with TemporaryDirectory() as folder:
        file = Path(folder, "advice.yaml")
        file.write_text(text, encoding="utf-8")
        findings = errors_of(load([file]).findings)
    if findings:
        raise InvalidDeclarations(findings)
    return text


class _Dumper(yaml.SafeDumper): ...


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if text.lower() in ("y", "n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)


def _target(target: Target) -> JsonValue:
    if target.table:
        return {"table": {"name": target.table}}
    path: dict[str, JsonValue] = {"uri": target.uri, "format": target.format}
    if target.options:
        path["options"] = dict(target.options)
    return {"path": path}


def _index(index: IndexDefinition) -> JsonValue:
    columns = [
        term.label if term.names is None else ".".join(map(_quoted, term.names))
        for term in index.terms
    ]
    subject: dict[str, JsonValue] = {"type": index.type}
    if index.term.names is None:
        subject["expression"] = columns[0]
    else:
        subject["column"] = columns[0]
    if index.parameters:
        subject["parameters"] = dict(index.parameters)
    return subject


def _quoted(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def _name(target: Target) -> str:
    last = (target.table or target.uri).rsplit("/", 1)[-1]
    plain = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")
    return f"{plain[:200] or 'advised'}-skipping"
