"""`judge`: the verdict about any text that is expensive to analyse."""

from __future__ import annotations

from typing import Protocol, overload

from snaploom.planning.judging.regexlist import (
    MOST_MEMORY,
    MOST_SECONDS,
    REGEXES_TOO_LARGE,
    REGEXES_TOO_LONG,
    RegexList,
    RegexVerdict,
    judge_regexes,
)
from snaploom.planning.sqlgate.facts import SqlFault, SqlText, SqlVerdict
from snaploom.planning.sqlgate.facts import judge as judge_sql

JudgedText = SqlText | RegexList
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
