"""The six kinds: names, plurals, short names, printer columns, and resources as YAML."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import yaml
from pydantic import JsonValue

from snaploom.models.common import Resource, ResourceStatus
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex

CATEGORY = "snaploom"
"""`kubectl get snaploom` lists every kind."""

AnyResource = (
    DataSource
    | DataRelationship
    | MetadataApplicator
    | FieldTransformer
    | OutputDataset
    | SkippingIndex
)


@dataclass(frozen=True)
class PrinterColumn:
    """A column of `kubectl get`; priority 1 shows under `-o wide` only."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True)
class Kind:
    """Facts about a kind that Kubernetes needs besides its schema."""

    name: str
    plural: str
    short_name: str
    model: type[Resource]
    columns: tuple[PrinterColumn, ...]

    @property
    def singular(self) -> str:
        return self.name.lower()

    @cached_property
    def status(self) -> type[ResourceStatus]:
        """Model of its status."""
        found: type[ResourceStatus] = get_args(self.model.model_fields["status"].annotation)[0]
        return found


# `kubectl get snaploom` puts `datarelationship.snaploom.io/` before each name and must fit into 80
# columns: times are shown as ages, and all that can wait stands under `-o wide`.
_READY = PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status')
_REASON = PrinterColumn("Reason", '.status.conditions[?(@.type=="Ready")].reason')
_AGE = PrinterColumn("Age", ".metadata.creationTimestamp", type="date")
_WIDE_AGE = replace(_AGE, priority=1)
_USED_BY = PrinterColumn("Used-By", ".status.usedBy.count", type="integer", priority=1)
_RUN = PrinterColumn("Run", ".status.currentRun.phase", priority=1)
_PROGRESS = PrinterColumn("Progress", ".status.currentRun.progress", priority=1)
_LAST_RUN = PrinterColumn("Last-Run", ".status.lastRun.phase", priority=1)
_LAST_REASON = PrinterColumn("Last-Reason", ".status.lastRun.reason", priority=1)
_LATEST = ".status.latestSnapshot.time"
_PUBLISHED = ".status.latestSnapshot.publishedAt"
_SUSPENDED = PrinterColumn("Suspended", ".spec.run.suspend", type="boolean", priority=1)
_NEXT_RUN = PrinterColumn("Next-Run", ".status.nextRunTime", priority=1)
_MESSAGE = PrinterColumn("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1)


KINDS = (
    Kind(
        "MetadataApplicator", "metadataapplicators", "mapp", MetadataApplicator,
        (_READY, _REASON, _AGE, _USED_BY, _MESSAGE),
    ),
    Kind(
        "FieldTransformer", "fieldtransformers", "ftr", FieldTransformer,
        (_READY, _REASON, _AGE, _USED_BY, _MESSAGE),
    ),
    Kind(
        "DataSource", "datasources", "dsrc", DataSource,
        (
            _READY, _REASON, _AGE, _USED_BY,
            PrinterColumn("Snapshot", ".status.lastSeen.latestSnapshot", priority=1), _MESSAGE,
        ),
    ),
    Kind(
        "DataRelationship", "datarelationships", "drel", DataRelationship,
        (_READY, _REASON, _AGE, _USED_BY, _MESSAGE),
    ),
    Kind(
        "OutputDataset", "outputdatasets", "ods", OutputDataset,
        (
            _READY, _REASON, PrinterColumn("Published", _PUBLISHED, type="date"), _WIDE_AGE,
            PrinterColumn("Snapshot", _LATEST, priority=1),
            PrinterColumn("Rows", ".status.latestSnapshot.rows", type="integer", priority=1),
            _SUSPENDED, _RUN, _PROGRESS, _LAST_RUN, _LAST_REASON, _NEXT_RUN, _MESSAGE,
        ),
    ),
    Kind(
        "SkippingIndex", "skippingindexes", "skix", SkippingIndex,
        (
            _READY, _REASON, PrinterColumn("State", ".status.state"), _WIDE_AGE,
            PrinterColumn("Stale", ".status.files.stale", type="integer", priority=1),
            _SUSPENDED, _RUN, _PROGRESS, _LAST_RUN, _LAST_REASON, _NEXT_RUN, _MESSAGE,
        ),
    ),
)  # fmt: skip

KIND_BY_NAME = {kind.name: kind for kind in KINDS}


# Resources as YAML documents.


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
