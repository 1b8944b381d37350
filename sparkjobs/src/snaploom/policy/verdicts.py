"""Verdicts about texts that are expensive to analyse; as a program, one text a line."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass, fields
from types import FrameType
from typing import Protocol, overload

from snaploom import policy
from snaploom.policy.regexes import RegexInvalid, size_of
from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlForm, SqlText, SqlVerdict
from snaploom.policy.sqltext import judge as judge_sql

# Texts and verdicts about them as lines of JSON, for processes that judge for others.

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


@dataclass(frozen=True, slots=True)
class RegexList:
    """The regular expressions of one object, in order."""

    patterns: tuple[str, ...]


# `judge`: the verdict about any text that is expensive to analyse.

JudgedText = SqlText | RegexList


@dataclass(frozen=True, slots=True)
class RegexFault:
    """The reason why a regular expression is refused, and the replacement to write."""

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class RegexVerdict:
    """Facts about the regular expressions of one object."""

    judged: tuple[int | RegexFault, ...]
    """Of each the number of its groups, or its fault; fewer than there are if the rest was not
    judged."""
    unjudged: RegexFault | None = None
    """Reason why the rest was not judged."""


Verdict = SqlVerdict | RegexVerdict


class TextJudge(Protocol):
    """Judges texts: at once, or by a judgement received from another process."""

    @overload
    def __call__(self, text: SqlText, /) -> SqlVerdict: ...

    @overload
    def __call__(self, text: RegexList, /) -> RegexVerdict: ...


@overload
def judge(text: SqlText, /) -> SqlVerdict: ...


@overload
def judge(text: RegexList, /) -> RegexVerdict: ...


def judge(text: JudgedText, /) -> Verdict:
    """The verdict about a text; never an exception."""
    return judge_sql(text) if isinstance(text, SqlText) else judge_regexes(text)


def too_long(text: JudgedText) -> Verdict:
    """The verdict about a text whose time is used up."""
    if isinstance(text, SqlText):
        return SqlFault(
            f"it takes more than {MOST_SECONDS:g} s to parse; write it with less nesting"
        )
    return RegexVerdict((), REGEXES_TOO_LONG)


def too_large(text: JudgedText) -> Verdict:
    """The verdict about a text that ends its process."""
    if isinstance(text, SqlText):
        return SqlFault(f"it takes more than {MOST_MEMORY >> 20:,} MiB to parse; simplify it")
    return RegexVerdict((), REGEXES_TOO_LARGE)


# All regular expressions of one object, judged together: they share a limit.

MAX_INSTRUCTIONS = 1_000_000
"""Programs of all patterns of an object together, or the work of reading them where that is more:
several thousand ordinary ones. Compiling so many instructions takes half a second (measured)."""
MOST_SECONDS = 2.0
"""Processor time that a text may take; the largest that pass the scan take a quarter of a second.
Time of the processor, not of the clock: a busy machine refuses nothing."""
MOST_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space; the largest texts that pass the scan take some 150 MB."""

_SIMPLER = "give smaller counts in { }, fewer classes such as \\w, or divide the resource"
TOO_LARGE_TOGETHER = RegexFault(
    f"the regular expressions before this one are too large together, with more than "
    f"{MAX_INSTRUCTIONS:,} instructions; it was not judged, nor those after it",
    _SIMPLER,
)
REGEXES_TOO_LONG = RegexFault(
    f"the regular expressions of this resource take more than {MOST_SECONDS:g} s to analyse",
    _SIMPLER,
)
REGEXES_TOO_LARGE = RegexFault(
    f"the regular expressions of this resource take more than {MOST_MEMORY >> 20:,} MiB to analyse",
    _SIMPLER,
)


def judge_regexes(regexes: RegexList) -> RegexVerdict:
    """The verdict about each, until they are too large together; never an exception."""
    judged: list[int | RegexFault] = []
    instructions = 0
    for pattern in regexes.patterns:
        if instructions > MAX_INSTRUCTIONS:
            return RegexVerdict(tuple(judged), TOO_LARGE_TOGETHER)
        try:
            size = size_of(pattern)
        except RegexInvalid as error:
            instructions += error.instructions
            judged.append(RegexFault(error.fault, error.instead))
        else:
            instructions += size.instructions
            judged.append(size.groups)
    return RegexVerdict(tuple(judged))


# `python -m snaploom.policy.verdicts`: judges texts, one line in, one line out.


class _OutOfTime(BaseException):
    """The processor time of a text is used up; no handler of a parser catches it."""


def main() -> None:
    """Judge until the input ends; the first line signals readiness."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    os.nice(15)  # who answers reviews goes first: bench-admission is measured so
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGVTALRM, _out_of_time)
    _ = policy.judge  # so that no text's time is used for the import
    _write(b"\n")
    for line in sys.stdin.buffer:
        _write(verdict_line(_timed(read_text(line))))


def _timed(text: JudgedText) -> Verdict:
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        verdict = judge(text)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _OutOfTime:
        return too_long(text)
    return verdict


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise _OutOfTime


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
