"""Composes YAML text to nodes with positions, within bounds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import yaml
from pydantic import JsonValue

from snaploom.loading.nearmisses import did_you_mean

# The meaning of a plain YAML scalar, read as kubectl reads it, so that one file means one thing.

ScalarValue = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_LONGEST_INTEGER = 66
"""Characters of the longest 64-bit number, in binary with its prefix; longer text is no integer."""
_LONGEST_FLOAT = 400
"""More digits than any 64-bit float has an effect of."""


def resolve_plain(text: str) -> ScalarValue:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    number = _number(text.replace("_", ""))
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if len(text) <= _LONGEST_INTEGER and (form := _INTEGER.fullmatch(text)):
        value = _integer(form)
        if -(2**63) <= value < 2**64:
            return value
    if len(text) <= _LONGEST_FLOAT and _FLOAT.fullmatch(text):
        real = float(text)
        return real if math.isfinite(real) else None
    return None


def _integer(form: re.Match[str]) -> int:
    for group, base in (("hex", 16), ("binary", 2), ("octal", 8), ("decimal", 10)):
        if form[group] is not None:
            return int(form["sign"] + form[group], base)
    raise AssertionError("one of the groups matched")


# Parsed YAML with positions: scalars, sequences and mappings, and the way to a field path.


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
    """Return the position of a path: a scalar's own, the key of anything larger.

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


# Composes YAML text to nodes with positions, within bounds; reports every fault.

MAX_DEPTH = 64
"""Levels of nesting. The deepest sensible declaration, a data type of 15 nested structs (as deep as
BigQuery reads) in a List, has about 60; Python's own recursion limit is far away."""
MAX_ALIASED_NODES = 100_000
"""Nodes that the aliases of a file may add: more than any file of the greatest size needs for its
repetitions, and little enough that a "billion laughs" ends in milliseconds."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", f"{_TAG}str", f"{_TAG}timestamp"})
_PLAIN_TAGS = frozenset({f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null")})
_COLLECTION_TAGS = frozenset({None, "!", f"{_TAG}map", f"{_TAG}seq"})


@dataclass(frozen=True)
class Fault:
    """A fault of a text, and its place."""

    code: str
    message: str
    at: Position
    path: str = ""
    found: str = ""
    expected: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Document:
    """One document of a file; its faults do not hide those of others."""

    node: Node
    at: Position
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Composed:
    """The documents of a file up to its end, or up to the fault after which nothing is certain."""

    documents: tuple[Document, ...]
    fault: Fault | None


class _Unreadable(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def compose(text: str) -> Composed:
    """The documents of a YAML (or JSON) text."""
    documents: list[Document] = []
    composer = _Composer(text)
    try:
        documents.extend(composer.documents())
    except _Unreadable as unreadable:
        return Composed(tuple(composer.finished), unreadable.fault)
    except yaml.YAMLError as error:
        return Composed(tuple(composer.finished), _syntax_fault(error, text))
    return Composed(tuple(documents), None)


class _Composer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._path: list[Segment] = []
        self._faults: list[Fault] = []
        self._anchors: dict[str, Node | None] = {}
        self._aliased = 0
        self._events: Iterator[yaml.Event] = iter(())
        self.finished: list[Document] = []

    def documents(self) -> list[Document]:
        self._events = yaml.parse(self._text, Loader=_Loader)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors, self._faults = {}, []
                first = next(self._events)
                node = self._node(first, 0)
                self.finished.append(Document(node, _at(first), tuple(self._faults)))
        return self.finished

    def _node(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > MAX_DEPTH:
            raise self._unreadable(
                "SL102", "this is nested too deeply", event,
                found=f"more than {MAX_DEPTH} levels", expected=f"at most {MAX_DEPTH} levels",
                hint="nest less deeply; check brackets and indentation above this place",
            )  # fmt: skip
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        node = self._content(event, depth)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _content(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.CollectionStartEvent) and event.tag not in _COLLECTION_TAGS:
            raise self._unsupported_tag(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(depth)
        return self._mapping(depth)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        text: str = event.value
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise self._unreadable("SL104", "half of a surrogate pair is not a character", event)
        if event.implicit[1] or event.tag in _TEXT_TAGS:
            return Scalar(text, text)
        if event.tag is None or event.tag in _PLAIN_TAGS:
            return Scalar(resolve_plain(text), text)
        raise self._unsupported_tag(event)

    def _sequence(self, depth: int) -> Sequence:
        items: list[Item] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            self._path.append(len(items))
            items.append(Item(_at(event), self._node(event, depth + 1)))
            self._path.pop()
        return Sequence(tuple(items), 1 + sum(item.node.size for item in items))

    def _mapping(self, depth: int) -> Mapping:
        entries: dict[str, Entry] = {}
        merged: list[Mapping] = []
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, depth)
            self._path.append(key)
            value = next(self._events)
            node = self._node(value, depth + 1)
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged.extend(self._merged(node, value))
            elif key in entries:
                self._faults.append(
                    Fault(
                        "SL105", f"the key '{key}' stands twice in the same mapping", _at(event),
                        join_path(self._path),
                        found=f"first on line {entries[key].key_at.line}, "
                        f"again on line {_at(event).line}",
                        expected="each key once")
                )  # fmt: skip
            else:
                entries[key] = Entry(_at(event), _at(value), node)
            self._path.pop()
        for mapping in merged:
            for key, entry in mapping.entries.items():
                entries.setdefault(key, entry)
        return Mapping(entries, 1 + sum(entry.node.size for entry in entries.values()))

    def _key(self, event: yaml.Event, depth: int) -> str:
        node = self._node(event, depth + 1)
        if not isinstance(node, Scalar):
            raise self._unreadable("SL104", "a key must be text, not a list or mapping", event)
        if node.value is None or isinstance(node.value, bool):
            self._faults.append(
                Fault(
                    "SL112", "a key must be text", _at(event), join_path([*self._path, node.text]),
                    found=f"{node.text or 'nothing'}, which YAML takes for "
                    f"{'null' if node.value is None else 'a boolean'}",
                    expected="text",
                    hint=f'put it in quotes: "{node.text}"',
                )
            )  # fmt: skip
        return node.text

    def _merged(self, node: Node, event: yaml.Event) -> list[Mapping]:
        if isinstance(node, Mapping):
            return [node]
        if isinstance(node, Sequence):
            members = [item.node for item in node.items]
            mappings = [member for member in members if isinstance(member, Mapping)]
            if len(mappings) == len(members):
                return mappings
        raise self._unreadable(
            "SL104", "the merge key '<<' needs a mapping, or a list of mappings", event
        )

    def _alias(self, event: yaml.AliasEvent) -> Node:
        name = event.anchor or ""
        if name not in self._anchors:
            raise self._unreadable(
                "SL104", f"the alias '*{name}' has no anchor before it", event,
                found=f"*{name}", expected=f"&{name} at a value above it in the same document",
                hint=did_you_mean(name, self._anchors) or f"put the text in quotes: \"*{name}\"",
            )  # fmt: skip
        node = self._anchors[name]
        if node is None:
            raise self._unreadable(
                "SL104", f"the alias '*{name}' contains itself", event,
                found=f"*{name} inside &{name}", expected="an alias of a value that is complete",
            )  # fmt: skip
        self._aliased += node.size
        if self._aliased > MAX_ALIASED_NODES:
            raise self._unreadable(
                "SL102", "the aliases of this file expand to too many values", event,
                found=f"{self._aliased:,} values, and more to come",
                expected=f"at most {MAX_ALIASED_NODES:,}")  # fmt: skip
        return node

    def _unsupported_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> _Unreadable:
        return self._unreadable(
            "SL104", "this tag is not supported", event,
            found=str(event.tag), expected="plain YAML", hint="remove the tag",
        )  # fmt: skip

    def _unreadable(
        self,
        code: str,
        message: str,
        event: yaml.Event,
        *,
        found: str = "",
        expected: str = "",
        hint: str = "",
    ) -> _Unreadable:
        path = join_path(self._path)
        return _Unreadable(Fault(code, message, _at(event), path, found, expected, hint))


def _at(event: yaml.Event) -> Position:
    mark = event.start_mark
    assert mark is not None  # every event of a parser has one
    return Position(mark.line + 1, mark.column + 1)


def _syntax_fault(error: yaml.YAMLError, text: str) -> Fault:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        position = getattr(error, "position", 0)
        return Fault(
            "SL104", "there is a character that YAML does not allow",
            _position_in(text, position if isinstance(position, int) else 0),
            expected="text without control characters",
            hint="remove control characters",
        )  # fmt: skip
    at = Position(error.problem_mark.line + 1, error.problem_mark.column + 1)
    return Fault(
        "SL104",
        f"this is not YAML: {_problem(error)}",
        at,
        found=_excerpt(text, at),
        expected="YAML, indented with spaces",
        hint=_syntax_hint(text, at),
    )


def _problem(error: yaml.MarkedYAMLError) -> str:
    context = f"{error.context}, " if error.context else ""
    return f"{context}{error.problem or 'unknown problem'}"


def _line(text: str, at: Position) -> str:
    lines = text.splitlines()
    return lines[at.line - 1] if 0 < at.line <= len(lines) else ""


def _excerpt(text: str, at: Position) -> str:
    """The text of the place, without the value of the line, which may be secret."""
    line = _line(text, at)
    if not line.strip():
        return "the end of the file" if at.line > len(text.splitlines()) else "an empty line"
    key, separator, _ = line.strip().partition(":")
    return f"{key}: ..." if separator else "a line without a key"


def _syntax_hint(text: str, at: Position) -> str:
    line = _line(text, at)
    if "\t" in line[: len(line) - len(line.lstrip())] or line[at.column - 1 : at.column] == "\t":
        return "indent with spaces: there is a tab, which YAML does not allow"
    if "{{" in line:
        return "put the value in quotes: unquoted `{` begins a mapping"
    if line.lstrip().partition(": ")[2].startswith(("%", "@", "`", "*", "&")):
        return "put the value in quotes"
    return "check indentation, quotes and colons on this line and the one before"


def _position_in(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
