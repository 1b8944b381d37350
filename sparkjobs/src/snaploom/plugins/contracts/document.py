"""Writes the contract of an output: what is published now, and what is declared of it; pure.

The form is the Open Data Contract Standard, version 3.1. A property of a struct or of the elements
of a list is nested, as the standard has it; a map is an object with its Spark type. Terms that the
standard lacks are in `customProperties`, whose names then begin with `snaploom`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from pydantic import JsonValue

from snaploom.confidential import without_secrets
from snaploom.models.common import CheckMode, TimeOffset
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.windows import Windows
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import read_places
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.addresses import store_kind
from snaploom.types import schemas

API_VERSION = "v3.1.0"
"""Of the standard: the first with timestamps; newer readers take it too."""
FIRST_VERSION = "1.0.0"
"""Version of a contract where nobody gives another."""
DATA = "data"
"""Field of the output, and of each joined source, that has the source's columns."""
ENGINE = "snaploom"
"""Name of the engine of our checks."""

WINDOWS = "snaploomWindows"
"""Custom property of the columns of a source that has windows: the windows as declared."""

_LOGICAL = {each.spark: each.logical for each in schemas.SIMPLE_TYPES}
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_DESCRIPTIONS = ("description", "comment")
_SEVERITIES = {CheckMode.FAIL: "error", CheckMode.WARN: "warning"}


@dataclass(frozen=True)
class PublishedTable:
    """Subject of a contract: the newest snapshot of an output."""

    bundle: Bundle
    """The output, with everything that it refers to."""
    tree: JoinTree
    schema: schemas.Struct
    """Columns of the newest snapshot, without the partition column."""
    partition: schemas.Field

    @property
    def output(self) -> OutputDataset:
        return self.bundle.output


def contract_document(table: PublishedTable, version: str = FIRST_VERSION) -> dict[str, JsonValue]:
    """The contract as a document, in the order in which people read it."""
    output = table.output
    folder = without_secrets(output.spec.output_folder.folder_uri)
    document: dict[str, JsonValue] = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": str(uuid5(NAMESPACE_URL, f"{folder}#{output.name}")),
        "name": output.name,
        "version": version,
        "status": "active",
        "servers": [_server(output)],
        "schema": [_table(table)],
    }
    promises = list(_service_levels(output, table.partition.name))
    if promises:
        document["slaProperties"] = promises
    return document


def physical_type(type_: schemas.Type) -> str:
    """A type as Spark's SQL writes it, with the parts of structs."""
    match type_:
        case schemas.Simple(name):
            return schemas.SQL_NAMES.get(name, name)
        case schemas.Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case schemas.Array(element):
            return f"array<{physical_type(element)}>"
        case schemas.Map(key, value):
            return f"map<{physical_type(key)},{physical_type(value)}>"
        case schemas.Struct(fields):
            inner = ",".join(f"{field.name}:{physical_type(field.type)}" for field in fields)
            return f"struct<{inner}>"


def _server(output: OutputDataset) -> JsonValue:
    folder = output.spec.output_folder
    uri = without_secrets(folder.folder_uri)
    parts = urlsplit(uri)
    data_format = folder.data_format.of_files.value.lower()
    server: dict[str, JsonValue] = {"server": "published", "environment": "production"}
    if parts.scheme in ("", "file"):
        return {**server, "type": "local", "path": parts.path, "format": data_format}
    kind, named = store_kind(parts.scheme), "custom"
    if kind is not None and kind.contract_type != named:
        named, uri = kind.contract_type, f"{kind.schemes[0]}://{parts.netloc}{parts.path}"
    return {**server, "type": named, "location": uri, "format": data_format}


def _table(table: PublishedTable) -> JsonValue:
    output = table.output
    root = output.spec.data_model.root_data_source
    is_table = output.spec.output_folder.data_format.is_table
    keys = {_column(name): place for place, name in enumerate(root.root_key, 1)}
    nodes = {node_path(table.tree, node): node for node in table.tree.nodes}
    writer = _Properties(table.bundle, nodes, keys)
    document: dict[str, JsonValue] = {
        "name": output.name,
        "physicalName": without_secrets(output.spec.output_folder.folder_uri),
        "physicalType": "table" if is_table else "files",
        "logicalType": "object",
        "dataGranularityDescription": f"one row for each row of {root.data_source} in a snapshot",
        "properties": [
            *writer.fields(table.schema, ()),
            _partition(table.partition, len(keys)),
        ],
    }
    quality = [_check(check.name, check.expression, check.mode) for check in output.spec.checks]
    if quality:
        document["quality"] = quality
    return document


def _column(name: str) -> tuple[str, ...]:
    return tuple(part.casefold() for part in (DATA, *(schemas.split_path(name) or (name,))))


def _partition(field: schemas.Field, keys: int) -> JsonValue:
    document: dict[str, JsonValue] = {
        "name": field.name,
        "logicalType": _logical(field.type),
        "physicalType": physical_type(field.type),
        "required": True,
        "partitioned": True,
        "partitionKeyPosition": 1,
    }
    if keys:
        document |= {"primaryKey": True, "primaryKeyPosition": keys + 1}
    return document


def _check(name: str, expression: str, mode: CheckMode) -> JsonValue:
    return {
        "name": name,
        "type": "custom",
        "engine": ENGINE,
        "severity": _SEVERITIES[mode],
        "implementation": {"expression": expression, "mode": mode.value},
    }


@dataclass(frozen=True)
class _Properties:
    """Writes columns, with what is known of each."""

    bundle: Bundle
    nodes: Mapping[tuple[str, ...], JoinNode]
    """Nodes of the tree by the path of their columns."""
    keys: Mapping[tuple[str, ...], int]
    """Places in the `rootKey` by path."""

    def fields(self, struct: schemas.Struct, path: tuple[str, ...]) -> Sequence[JsonValue]:
        return [self._field(field, (*path, field.name.casefold())) for field in struct.fields]

    def _field(self, field: schemas.Field, path: tuple[str, ...]) -> JsonValue:
        document: dict[str, JsonValue] = {"name": field.name, **self._type(field.type, path)}
        place = self.keys.get(path)
        if place is not None:
            document |= {"required": True, "primaryKey": True, "primaryKeyPosition": place}
        node = self.nodes.get(path)
        if node is not None:
            places = read_places(self.bundle, node.source)
            document["transformSourceObjects"] = [f"{at.namespace}/{at.name}" for at in places]
            document["transformLogic"] = _logic(self.bundle, node)
            if isinstance(node.timed, Windows):
                rule: JsonValue = {"property": WINDOWS, "value": node.timed.dump()}
                return document | {"customProperties": [rule]}
        above = self.nodes.get(path[:-1])
        if above is not None and isinstance(above.timed, Windows):
            for one in above.timed.aggregates:
                if one.name.casefold() == path[-1]:
                    document["transformLogic"] = one.text
        return document | _described(field)

    def _type(self, type_: schemas.Type, path: tuple[str, ...]) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = {"logicalType": _logical(type_)}
        match type_:
            case schemas.Struct():
                return {
                    **document,
                    "physicalType": "struct",
                    "properties": list(self.fields(type_, path)),
                }
            case schemas.Array(element):
                items = self._type(element, path)
                return {**document, "physicalType": "array", "items": items}
        return {**document, "physicalType": physical_type(type_)}


def _logical(type_: schemas.Type) -> str:
    match type_:
        case schemas.Simple(name):
            return _LOGICAL.get(name, "string")
        case schemas.Decimal():
            return "number"
        case schemas.Array():
            return "array"
    return "object"


def _logic(bundle: Bundle, node: JoinNode) -> str:
    if not node.relationship:
        return f"rows of {node.source}"
    normalized = bundle.relationship(node.relationship).spec.normalized_keys(node.source)
    how = f", with {normalized}" if normalized else ""
    grouped = f", one list a {', '.join(node.group_by)}" if node.group_by else ""
    history = "" if node.history is None else f", of the last {node.history.text}"
    times = "" if node.timed is None else f", {node.timed.text}"
    return f"left join of {node.source} by {node.relationship}{how}{grouped}{history}{times}"


def _described(field: schemas.Field) -> dict[str, JsonValue]:
    """Metadata of a column: a description, and the rest as it is."""
    metadata: dict[str, JsonValue] = json.loads(field.metadata or "{}")
    description = next((metadata[key] for key in _DESCRIPTIONS if metadata.get(key)), None)
    found: dict[str, JsonValue] = {}
    if description is not None:
        found["description"] = str(description)
    others: list[JsonValue] = [
        {"property": key, "value": value}
        for key, value in metadata.items()
        if key not in _DESCRIPTIONS
    ]
    return found | ({"customProperties": others} if others else {})


def node_path(tree: JoinTree, node: JoinNode) -> tuple[str, ...]:
    """The path of a node's columns: `data`, below the fields of its ancestors."""
    return (*(name.casefold() for name in tree.path(node.number)), DATA)


def _service_levels(output: OutputDataset, partition: str) -> Iterator[JsonValue]:
    filter_ = output.spec.data_model.root_data_source.snapshot_filter
    if filter_.from_interval is not None:
        value, unit = length_text(filter_.from_interval.interval_length)
        yield {"property": "frequency", "value": value, "unit": unit, "element": partition}
    elif filter_.from_cron is not None:
        cron = filter_.from_cron
        yield {
            "property": "frequency",
            "value": cron.schedule,
            "element": partition,
            "scheduler": "cron",
            "schedule": cron.schedule,
        }
    if output.spec.run.freshness is not None:
        value, unit = length_text(output.spec.run.freshness.max_age)
        yield {
            "property": "latency",
            "value": value,
            "unit": unit,
            "element": partition,
            "description": "longest time since the newest snapshot was published",
        }
    deletes = output.spec.output_folder.snapshot_auto_delete
    if not deletes.max_snapshot_age.is_zero:
        value, unit = length_text(deletes.max_snapshot_age)
        yield {"property": "retention", "value": value, "unit": unit, "element": partition}


def length_text(length: TimeOffset) -> tuple[JsonValue, str]:
    """A length as the standard has it: a number and a unit, or ISO 8601 where there are two."""
    parts = {unit: getattr(length, unit) for unit in _UNITS if getattr(length, unit)}
    if len(parts) == 1 and not length.nano:
        ((unit, number),) = parts.items()
        return number, unit
    seconds = length.second + length.nano / 1e9
    days = "".join(
        f"{number}{letter}"
        for number, letter in (
            (length.year, "Y"), (length.month, "M"), (length.week * 7 + length.day, "D"),
        )
        if number
    )  # fmt: skip
    times = "".join(
        f"{number:g}{letter}"
        for number, letter in ((length.hour, "H"), (length.minute, "M"), (seconds, "S"))
        if number
    )
    return f"P{days}{f'T{times}' if times else ''}", "ISO 8601"
