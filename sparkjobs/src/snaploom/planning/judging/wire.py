"""Texts and verdicts about them as lines of JSON, for processes that judge for others."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

from snaploom.planning.judging.regexlist import RegexFault, RegexList, RegexVerdict
from snaploom.planning.judging.texts import JudgedText, Verdict
from snaploom.planning.sqlgate.facts import SqlFacts, SqlFault, SqlForm, SqlText

_FACTS = "facts"
_FAULT = "fault"
_PATTERNS = "patterns"
_REGEXES = "regexes"
_UNJUDGED = "unjudged"


def text_line(text: JudgedText) -> bytes:
    """A text as one line."""
    return _line({_PATTERNS: text.patterns} if isinstance(text, RegexList) else asdict(text))


def read_text(line: bytes) -> JudgedText:
    """The text of a line."""
    document = json.loads(line)
    if _PATTERNS in document:
        return RegexList(tuple(document[_PATTERNS]))
    form, added = SqlForm(document["form"]), tuple(document["added"])
    return SqlText(document["text"], form, document["dialect"], added)


def verdict_line(verdict: Verdict) -> bytes:
    """A verdict as one line."""
    if isinstance(verdict, RegexVerdict):
        judged = [each if isinstance(each, int) else asdict(each) for each in verdict.judged]
        unjudged = verdict.unjudged and asdict(verdict.unjudged)
        return _line({_REGEXES: judged, _UNJUDGED: unjudged})
    return _line({_FACTS if isinstance(verdict, SqlFacts) else _FAULT: asdict(verdict)})


def read_verdict(line: bytes) -> Verdict:
    """The verdict of a line."""
    document = json.loads(line)
    if _REGEXES in document:
        judged = (e if isinstance(e, int) else RegexFault(**e) for e in document[_REGEXES])
        unjudged = document[_UNJUDGED]
        return RegexVerdict(tuple(judged), RegexFault(**unjudged) if unjudged else None)
    if _FAULT in document:
        return SqlFault(**document[_FAULT])
    found = document[_FACTS]
    values = {field.name: found[field.name] for field in fields(SqlFacts)}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return SqlFacts(**{**values, **lists})


def _line(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
