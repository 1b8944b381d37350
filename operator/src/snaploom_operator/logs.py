"""Log formats: JSON lines or text."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

FIELDS = ("resource", "run", "reason")
"""Fields of a line besides its message, in this order."""


_QUIET = {
    **dict.fromkeys(("aiohttp.access", "kubernetes", "urllib3", "asyncio"), logging.WARNING),
    "kopf": logging.ERROR,  # at an end it warns of each unfinished stream, 300 KB with 10,000
}
"""Verbose loggers of libraries, and the lowest level that is logged of them."""


def set_up_logs(form: Literal["json", "text"], level: str, stream: TextIO | None = None) -> None:
    """Log from a level on, as JSON or text, to one stream; None for standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name, least in _QUIET.items():
            logging.getLogger(name).setLevel(max(least, root.level))


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, str] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


class TextLines(logging.Formatter):
    """A line of text; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.getMessage()}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _fields(record: logging.LogRecord) -> dict[str, str]:
    return {key: str(getattr(record, key)) for key in FIELDS if hasattr(record, key)}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
