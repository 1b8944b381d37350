"""CustomResourceDefinitions of the six kinds, generated from their models.

The files in `crds/` are what users and charts install; they are generated text and a test compares
them with the models. Spec and status come from the models; the envelope is left to Kubernetes,
which allows no constraints on `metadata` beyond the name.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import JsonValue

from snaploom.localfiles import write_file
from snaploom.models.attributedocs import one_line
from snaploom.models.common import GROUP, VERSION
from snaploom.models.kinds import CATEGORY, KINDS, Kind, PrinterColumn
from snaploom.models.schema import Schema, as_object, structural_schema

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
