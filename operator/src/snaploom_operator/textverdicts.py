"""Verdicts about SQL and regular expressions, which worker processes compute.

Validation is pure and needs verdicts while it runs. But neither the event loop nor a thread may
parse SQL, because it cannot be ended, or compile regular expressions, because that holds Python's
lock. So a validation records the texts without a verdict, workers compute these, and the validation
is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, overload

from snaploom.planning.judging.regexlist import RegexList, RegexVerdict
from snaploom.planning.judging.texts import JudgedText, Verdict
from snaploom.planning.sqlgate.facts import SqlFault, SqlText, SqlVerdict

_NOT_YET = SqlFault("it is not analysed yet")
_NONE_YET = RegexVerdict(())
"""Placeholders of missing verdicts; findings with them are discarded."""


class TextVerdicts(Protocol):
    """Computes verdicts about texts."""

    def known(self, text: JudgedText) -> Verdict | None:
        """The cached verdict of a text; None when there is none."""
        ...

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        """Compute verdicts; a namespace waits for its own texts only."""
        ...


class RecordingJudge:
    """A `TextJudge` that returns known verdicts and records missing ones; for one validation."""

    def __init__(self, verdicts: TextVerdicts) -> None:
        self._verdicts = verdicts
        self._fetched: dict[JudgedText, Verdict] = {}
        self.missing: set[JudgedText] = set()
        """Requested texts without a verdict."""
        self.placeholders = 0
        """Number of returned placeholders."""

    @overload
    def __call__(self, text: SqlText, /) -> SqlVerdict: ...

    @overload
    def __call__(self, text: RegexList, /) -> RegexVerdict: ...

    def __call__(self, text: JudgedText, /) -> Verdict:
        """The verdict of a text, or a placeholder."""
        verdict = self._fetched.get(text) or self._verdicts.known(text)
        if verdict is None:
            self.missing.add(text)
            self.placeholders += 1
            return _NOT_YET if isinstance(text, SqlText) else _NONE_YET
        self._fetched[text] = verdict
        return verdict

    async def fetch_missing(self, namespace: str) -> None:
        """Compute the missing verdicts."""
        self._fetched.update(await self._verdicts.judged(namespace, self.missing))
        self.missing = set()
