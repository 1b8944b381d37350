"""Verdicts about SQL texts, which worker processes compute.

Validation is pure and needs verdicts while it runs, but neither the event loop nor a thread may
parse SQL. So a validation records the texts without a verdict, workers compute these, and the
validation is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from snaploom.planning.sqlgate.facts import SqlFault, SqlText, SqlVerdict

NOT_YET = SqlFault("it is not analysed yet")
"""Placeholder of a missing verdict; findings with it are discarded."""


class SqlVerdicts(Protocol):
    """Computes verdicts about SQL texts."""

    def known(self, text: SqlText) -> SqlVerdict | None:
        """The cached verdict of a text; None when there is none."""
        ...

    async def judged(
        self, namespace: str, texts: Iterable[SqlText]
    ) -> Mapping[SqlText, SqlVerdict]:
        """Compute verdicts; a namespace waits for its own texts only."""
        ...


class RecordingJudge:
    """A `SqlJudge` that returns known verdicts and records missing ones; for one validation.

    Args: verdicts: computes verdicts.
    """

    def __init__(self, verdicts: SqlVerdicts) -> None:
        self._verdicts = verdicts
        self._fetched: dict[SqlText, SqlVerdict] = {}
        self.missing: set[SqlText] = set()
        """Requested texts without a verdict."""
        self.placeholders = 0
        """How often `NOT_YET` was returned."""

    def __call__(self, text: SqlText) -> SqlVerdict:
        """The verdict of a text, or `NOT_YET`."""
        verdict = self._fetched.get(text) or self._verdicts.known(text)
        if verdict is None:
            self.missing.add(text)
            self.placeholders += 1
            return NOT_YET
        self._fetched[text] = verdict
        return verdict

    async def fetch_missing(self, namespace: str) -> None:
        """Compute the missing verdicts."""
        self._fetched.update(await self._verdicts.judged(namespace, self.missing))
        self.missing = set()
