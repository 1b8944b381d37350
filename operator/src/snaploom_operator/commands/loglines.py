"""Lines of several logs as one: read, filtered and brought into the order of time; pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos, format_instant
from snaploom_operator.cluster.podlogs import LogLine
from snaploom_operator.objects import Ref

DRIVER, OPERATOR = "driver", "operator"
_FIELDS = ("run", "reason")
"""What is shown of an object's fields besides its level and its message."""
_TEXT = re.compile(r"\S+Z (?P<level>[A-Z]+) ++(?P<message>.*)")
"""The operator's lines in its form for people: they begin with their time."""


@dataclass(frozen=True, order=True)
class Line:
    """A line for people."""

    time: EpochNanos
    source: str
    """Who wrote it: `driver` or `operator`."""
    text: str

    def __str__(self) -> str:
        moment = EpochNanos(self.time // NANOS_PER_MILLISECOND * NANOS_PER_MILLISECOND)
        return f"{format_instant(moment)} {self.source:<8} {self.text}"


def driver_line(line: LogLine) -> Line:
    """A line of a driver: ours as people read it, Spark's as it is."""
    told = _object(line.text)
    return Line(line.time, DRIVER, line.text if told is None else _shown(told, ("reason",)))


def operator_line(line: LogLine, resource: Ref) -> Line | None:
    """A line of the operator about a resource; None for one about something else.

    Args:
        line: as it was logged, in either form.
        resource: what the line has to be about.
    """
    told = _object(line.text)
    if told is not None:
        is_meant = told.get("resource") == str(resource)
        return Line(line.time, OPERATOR, _shown(told, _FIELDS)) if is_meant else None
    if f" resource={resource} " not in f"{line.text} ":
        return None
    match = _TEXT.fullmatch(line.text.replace(f" resource={resource}", "", 1))
    text = line.text if match is None else f"{match['level']:<7} {match['message']}"
    return Line(line.time, OPERATOR, text)


def _object(text: str) -> dict[str, JsonValue] | None:
    """The object that a line is, if it is one of a log."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "message" in found else None


def _shown(told: dict[str, JsonValue], fields: tuple[str, ...]) -> str:
    shown = "".join(f" {name}={told[name]}" for name in fields if told.get(name))
    text = f"{str(told.get('level', '')).upper():<7} {told['message']}{shown}"
    exception = told.get("exception")
    return f"{text}\n{exception}" if exception else text
