"""Declarations as short YAML with comments: flow style where it fits on a line, else blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import yaml
from pydantic import JsonValue

from snaploom.discovery.declarations import CommentPath, Declarations, Declared
from snaploom.discovery.foundfiles import LeftOut
from snaploom.models.resource import Resource
from snaploom.visibletext import visible

WIDTH = 110
"""Characters of a line up to which a list or map stays on it."""
MOST_LEFT_OUT = 40
"""Lines about parts left out; more are counted."""
_BLOCKS = frozenset({"spec", "schemaFields", "otherDataSources", "dataRelationships"})
"""Fields whose members stand on lines of their own, except a single one."""


def files_of(found: Declarations, about: Sequence[str]) -> dict[str, str]:
    """The text of each file, by its name.

    `about` has lines about the reading, for the beginning.
    """
    files = {
        "sources.yaml": _file(found.sources, [*about, *_left_out(found.left_out)]),
        "relationships.yaml": _file(
            found.relationships,
            ["Which columns mean the same entity, best evidence first."],
        ),
        "output.yaml": _file([found.output], []),
    }
    if not found.relationships:  # a file without a resource is a finding
        del files["relationships.yaml"]
    return files


def _file(declared: Iterable[Declared], about: Sequence[str]) -> str:
    head = "".join(f"{_comment(line)}\n" for line in about)
    texts = [resource_text(one) for one in declared]
    shown = [text for text in texts if text]
    return head + ("---\n" if head and shown else "") + "---\n".join(shown)


def _left_out(left_out: Sequence[LeftOut]) -> list[str]:
    if not left_out:
        return []
    lines = [f"  {each.what}: {each.why}" for each in left_out[:MOST_LEFT_OUT]]
    if len(left_out) > MOST_LEFT_OUT:
        lines.append(f"  and {len(left_out) - MOST_LEFT_OUT:,} more")
    return ["Left out:", *lines]


def resource_text(declared: Declared) -> str:
    """One resource as YAML, each comment in front of its subject."""
    lines = [_comment(line) for line in declared.head]
    body: list[str] = []
    for key, value in document_of(declared.resource).items():
        body.extend(_entry(key, value, 0, (key,), declared.comments))
    if declared.is_comment:
        body = [f"# {line}" for line in body]
    return "\n".join([*lines, *body]) + "\n"


def document_of(resource: Resource) -> dict[str, JsonValue]:
    """A resource as plain data, with the fields given and without defaults."""
    given: dict[str, JsonValue] = resource.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_unset=True, exclude={"status"}
    )
    return {"apiVersion": resource.api_version, "kind": resource.kind, **given}


def _comment(line: str) -> str:
    return f"# {visible(line)}".rstrip()


def _entry(
    key: str, value: JsonValue, indent: int, path: CommentPath, comments: Mapping[CommentPath, str]
) -> list[str]:
    pad = " " * indent
    above = [pad + _comment(comments[path])] if path in comments else []
    flow = f"{pad}{_flow(key)}: {_flow(value)}"
    if not isinstance(value, dict | list) or _is_flow(flow, value, path, comments):
        return [*above, flow]
    lines = [*above, f"{pad}{_flow(key)}:"]
    if isinstance(value, dict):
        for name, inner in value.items():
            lines.extend(_entry(name, inner, indent + 2, (*path, name), comments))
        return lines
    for index, inner in enumerate(value):
        lines.extend(_item(inner, indent + 2, (*path, index), comments))
    return lines


def _item(
    value: JsonValue, indent: int, path: CommentPath, comments: Mapping[CommentPath, str]
) -> list[str]:
    pad = " " * indent
    above = [pad + _comment(comments[path])] if path in comments else []
    flow = f"{pad}- {_flow(value)}"
    if not isinstance(value, dict) or len(flow) <= WIDTH or not value:
        return [*above, flow]
    lines: list[str] = []
    for name, inner in value.items():
        lines.extend(_entry(name, inner, indent + 2, (*path, name), comments))
    lines[0] = f"{pad}- {lines[0].lstrip()}"
    return [*above, *lines]


def _is_flow(
    flow: str, value: JsonValue, path: CommentPath, comments: Mapping[CommentPath, str]
) -> bool:
    has_comments = any(place[: len(path)] == path and place != path for place in comments)
    is_block = path[-1] in _BLOCKS and isinstance(value, dict | list) and len(value) > 1
    return len(flow) <= WIDTH and not has_comments and not is_block and path[-1] != "spec"


def _flow(value: JsonValue) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")
