"""Log lines of driver and operator: parsed, filtered, and merged by time."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from pydantic import JsonValue

from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos, format_instant
from snaploom.visibletext import visible_lines
from snaploom_operator.cluster.podlogs import LogLine
from snaploom_operator.objects import Ref

DRIVER, OPERATOR = "driver", "operator"
MERGE_SECONDS = 0.5
"""Seconds that lines of followed logs are held, so that earlier lines of other logs can arrive."""
_FIELDS = ("run", "reason")
"""Fields of a JSON log entry that are shown besides level and message."""
_TEXT = re.compile(r"\S+Z (?P<level>[A-Z]+) ++(?P<message>.*)")
"""A line of the operator's text format, which begins with its time."""


@dataclass(frozen=True, order=True)
class Line:
    """A displayed line."""

    time: EpochNanos
    source: str
    """`driver`, `operator` or `event`."""
    text: str

    def __str__(self) -> str:
        """The line for a terminal; further lines of its text are indented, as others never are."""
        text = visible_lines(self.text).replace("\n", "\n  ")
        moment = EpochNanos(self.time // NANOS_PER_MILLISECOND * NANOS_PER_MILLISECOND)
        return f"{format_instant(moment)} {self.source:<8} {text}"


def driver_line(line: LogLine) -> Line:
    """A line of a driver: Snaploom's JSON as text, Spark's lines unchanged."""
    entry = _object(line.text)
    return Line(line.time, DRIVER, line.text if entry is None else _shown(entry, ("reason",)))


def operator_line(line: LogLine, resource: Ref) -> Line | None:
    """A line of the operator, JSON or text, about a resource; None for other lines."""
    entry = _object(line.text)
    if entry is not None:
        is_meant = entry.get("resource") == str(resource)
        return Line(line.time, OPERATOR, _shown(entry, _FIELDS)) if is_meant else None
    if f" resource={resource} " not in f"{line.text} ":
        return None
    match = _TEXT.fullmatch(line.text.replace(f" resource={resource}", "", 1))
    text = line.text if match is None else f"{match['level']:<7} {match['message']}"
    return Line(line.time, OPERATOR, text)


def _object(text: str) -> dict[str, JsonValue] | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "message" in found else None


def _shown(entry: dict[str, JsonValue], fields: tuple[str, ...]) -> str:
    shown = "".join(f" {name}={entry[name]}" for name in fields if entry.get(name))
    text = f"{str(entry.get('level', '')).upper():<7} {entry['message']}{shown}"
    exception = entry.get("exception")
    return f"{text}\n{exception}" if exception else text


async def merged(logs: Sequence[AsyncIterator[Line]], *, is_followed: bool) -> AsyncIterator[Line]:
    """Merge logs by the time of their lines.

    Followed logs are in order as far as their lines arrive within half a second.

    Raises:
        ClusterError: a log failed; its earlier lines were returned.
    """
    waiting: list[Line] = []
    feeding = asyncio.gather(*(_feed(log, waiting) for log in logs))
    try:
        while not feeding.done():
            await asyncio.wait([feeding], timeout=MERGE_SECONDS if is_followed else None)
            while waiting:
                yield heappop(waiting)
        feeding.result()
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def _feed(log: AsyncIterator[Line], waiting: list[Line]) -> None:
    async for line in log:
        heappush(waiting, line)
