"""Parsed YAML with positions: scalars, sequences and mappings, and the way to a field path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import JsonValue

from snaploom.loading.scalars import ScalarValue


class Position(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int


class Scalar(NamedTuple):
    """A single value, with the text that it was written as."""

    value: ScalarValue
    text: str

    @property
    def size(self) -> int:
        """Nodes in all."""
        return 1


class Item(NamedTuple):
    """A member of a sequence, and where it stands (for an alias: where the alias stands)."""

    at: Position
    node: Node


class Entry(NamedTuple):
    """A value of a mapping, with the places of key and value."""

    key_at: Position
    at: Position
    node: Node


class Sequence(NamedTuple):
    """A list."""

    items: tuple[Item, ...]
    size: int


class Mapping(NamedTuple):
    """A mapping; its keys are text, merge keys are resolved."""

    entries: dict[str, Entry]
    size: int


Node = Scalar | Sequence | Mapping
Segment = str | int

_NOWHERE = Position(0, 0)
_SEGMENT = re.compile(
    r'\[(?P<index>[0-9]+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\.?(?P<name>[^.\[\]]+)'
)
_PLAIN_NAME = re.compile(r"[^.\[\]\"\s]+")


def plain(node: Node) -> JsonValue:
    """The value without positions; aliases are expanded."""
    if isinstance(node, Mapping):
        return {key: plain(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item.node) for item in node.items]
    return node.value


def node_of(value: JsonValue) -> Node:
    """The node of a value that comes from no file: the inverse of `plain`, without positions."""
    if isinstance(value, dict):
        entries = {key: Entry(_NOWHERE, _NOWHERE, node_of(inner)) for key, inner in value.items()}
        return Mapping(entries, 1 + sum(entry.node.size for entry in entries.values()))
    if isinstance(value, list):
        items = tuple(Item(_NOWHERE, node_of(inner)) for inner in value)
        return Sequence(items, 1 + sum(item.node.size for item in items))
    return Scalar(value, value if isinstance(value, str) else json.dumps(value))


def join_path(segments: Iterable[Segment]) -> str:
    """The text of a field path, such as `spec.dataModel.otherDataSources[2].fieldName`."""
    text = ""
    for segment in segments:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif not _PLAIN_NAME.fullmatch(segment):
            text += f"[{json.dumps(segment, ensure_ascii=False)}]"
        else:
            text += f".{segment}" if text else segment
    return text


def split_path(path: str) -> tuple[Segment, ...]:
    """The segments of a field path; the inverse of `join_path`."""
    segments: list[Segment] = []
    for match in _SEGMENT.finditer(path):
        if match["index"] is not None:
            segments.append(int(match["index"]))
        elif match["quoted"] is not None:
            segments.append(json.loads(match["quoted"]))
        else:
            segments.append(match["name"])
    return tuple(segments)


def scalar_at(node: Node, segments: Iterable[Segment]) -> Scalar | None:
    """The scalar at a path; None when there is none."""
    for segment in segments:
        if isinstance(node, Mapping) and isinstance(segment, str) and segment in node.entries:
            node = node.entries[segment].node
        elif isinstance(node, Sequence) and isinstance(segment, int) and segment < len(node.items):
            node = node.items[segment].node
        else:
            return None
    return node if isinstance(node, Scalar) else None


def position_of(node: Node, at: Position, segments: Iterable[Segment]) -> Position:
    """Where a path stands: a scalar's own place, the key of anything larger.

    Where the path leads to nothing (a field that is missing), the nearest that is there.
    """
    for segment in segments:
        if isinstance(node, Mapping) and isinstance(segment, str) and segment in node.entries:
            entry = node.entries[segment]
            node = entry.node
            at = entry.at if isinstance(node, Scalar) and node.text else entry.key_at
        elif isinstance(node, Sequence) and isinstance(segment, int) and segment < len(node.items):
            item = node.items[segment]
            node, at = item.node, item.at
        else:
            break
    return at
