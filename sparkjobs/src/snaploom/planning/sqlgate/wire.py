"""Texts of SQL and verdicts about them as lines of JSON, for processes that judge for others."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

from snaploom.planning.sqlgate.facts import SqlFacts, SqlFault, SqlForm, SqlText, SqlVerdict

_FACTS = "facts"
_FAULT = "fault"


def text_line(text: SqlText) -> bytes:
    """A text as one line."""
    return _line(asdict(text))


def read_text(line: bytes) -> SqlText:
    """The text of a line."""
    document = json.loads(line)
    form, added = SqlForm(document["form"]), tuple(document["added"])
    return SqlText(document["text"], form, document["dialect"], added)


def verdict_line(verdict: SqlVerdict) -> bytes:
    """A verdict as one line."""
    return _line({_FACTS if isinstance(verdict, SqlFacts) else _FAULT: asdict(verdict)})


def read_verdict(line: bytes) -> SqlVerdict:
    """The verdict of a line."""
    document = json.loads(line)
    if _FAULT in document:
        return SqlFault(**document[_FAULT])
    found = document[_FACTS]
    values = {field.name: found[field.name] for field in fields(SqlFacts)}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return SqlFacts(**{**values, **lists})


def _line(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
