"""Shortens a Report to fit: lists lose their oldest members, and it states how many.

A ConfigMap holds 1 MiB; what is left out is in the manifest, which is authoritative.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from snaploom.models.report import Report

LARGEST_REPORT = 900_000
"""Bytes of a Report in a ConfigMap: room is left for metadata, which counts too."""

SHORTENED_MESSAGE = 2_000
"""Characters that remain of the message when nothing else is left to leave out."""

Object = dict[str, JsonValue]

_DETAILS = ("sources", "joins", "excluded", "checks", "warnings")
"""Fields that can be left out of a published snapshot that stays in the list."""

_LISTS = {
    "snapshots": True, "skipped": True, "failed": False, "findings": False, "seen": False,
    "published": False, "newest.sources": False, "newest.excluded": False, "newest.joins": False,
    "newest.checks": False, "newest.warnings": False,
    "index.done": False, "index.warnings": False, "removed.leftNames": False,
}  # fmt: skip
"""Lists that may be shortened; whether their oldest members, which go first, come first. Of what
has no age the first members stay: the first failure is why the run failed."""


def fitting(report: Report, limit: int = LARGEST_REPORT) -> Report:
    """The Report in at most so many bytes of compact JSON, as much of it as fits.

    Args:
        report: any.
        limit: bytes; at least 100,000, which all that is no list always fits into.
    """
    if _size(report.dump()) <= limit:
        return report
    document = report.dump()
    left_out: dict[str, str] = {}
    for _ in _reductions(document, left_out):
        document["truncated"] = list(left_out.values())
        if _size(document) <= limit:
            break
    return Report.parse(document)


def compact(report: Report) -> str:
    """The JSON of a Report, as it is stored."""
    return _text(report.dump())


def _text(document: JsonValue) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _size(document: JsonValue) -> int:
    return len(_text(document).encode())


def _reductions(document: Object, left_out: dict[str, str]) -> Iterator[None]:
    """Leave out more and more; each step halves something, so that there are few."""
    yield from _without_details(document, left_out)
    lengths = {name: len(_list(document, name)) for name in _LISTS}
    sizes = {name: _size(_list(document, name)) for name in _LISTS if lengths[name]}
    while sizes:
        longest = max(sizes, key=sizes.__getitem__)
        members = _list(document, longest)
        kept, is_oldest_first = len(members) // 2, _LISTS[longest]
        members[:] = members[len(members) - kept :] if is_oldest_first else members[:kept]
        which = "oldest" if is_oldest_first else "last"
        gone = lengths[longest] - kept
        left_out[longest] = f"{longest}: the {which} {gone} of {lengths[longest]}"
        sizes[longest] = _size(members)
        if not kept:
            del sizes[longest]
        yield
    document["session"] = {}
    left_out["session"] = "session"
    yield
    document["message"] = str(document["message"])[:SHORTENED_MESSAGE]
    left_out["message"] = f"message: all but {SHORTENED_MESSAGE} characters"
    yield


def _without_details(document: Object, left_out: dict[str, str]) -> Iterator[None]:
    snapshots = [cast(Object, snapshot) for snapshot in _list(document, "snapshots")]
    done = 0
    while done < len(snapshots):
        upto = done + max(1, (len(snapshots) - done) // 2)
        for snapshot in snapshots[done:upto]:
            snapshot.update({name: [] for name in _DETAILS})
        done = upto
        left_out["details"] = f"snapshots: details of the oldest {done} of {len(snapshots)}"
        yield


def _list(document: Object, name: str) -> list[JsonValue]:
    """The list at a dotted path; empty, and of no effect, where there is none."""
    found: JsonValue = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, list) else []
