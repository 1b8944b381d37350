"""Log lines: one JSON object a line for machines, or text for people.

A line can say which resource it is about, which run, and for which reason. Objects of the cluster
are never logged, so that nothing secret can get into a line.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from snaploom_operator.objects import Ref

_FIELDS = ("resource", "run", "reason")
"""What a line can have besides its message, in this order."""
_QUIET = ("aiohttp.access", "kopf", "kubernetes", "urllib3", "asyncio")
"""Loggers of others, which tell of every request or object; their warnings are told."""


def about(resource: Ref | None = None, *, run: str = "", reason: str = "") -> Mapping[str, str]:
    """The `extra` of a log line.

    Args:
        resource: what it is about.
        run: name of the run.
        reason: stable CamelCase reason.
    """
    told = {"resource": str(resource) if resource is not None else "", "run": run, "reason": reason}
    return {key: value for key, value in told.items() if value}


def set_up_logs(form: Literal["json", "text"], level: str, stream: TextIO | None = None) -> None:
    """Log everything to one stream, standard error unless told otherwise.

    Args:
        form: `json` or `text`.
        level: `debug`, `info`, `warning` or `error`.
        stream: where to.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        told: dict[str, str] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


class TextLines(logging.Formatter):
    """A line for people; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.getMessage()}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _fields(record: logging.LogRecord) -> dict[str, str]:
    return {key: str(getattr(record, key)) for key in _FIELDS if hasattr(record, key)}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
