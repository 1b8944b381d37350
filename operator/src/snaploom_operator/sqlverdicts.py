"""Verdicts about SQL where nobody may parse: asked for first, judged elsewhere, and then used.

Validation is pure and asks for facts as it goes. Neither the event loop nor a thread may make them:
a validation notes which texts are not judged yet, processes judge those, and it is done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from snaploom.planning.sqlgate.facts import SqlFault, SqlText, SqlVerdict

NOT_YET = SqlFault("it is not judged yet")
"""Stands for a verdict in findings that are thrown away."""


class SqlVerdicts(Protocol):
    """Has texts of SQL judged."""

    def known(self, text: SqlText) -> SqlVerdict | None:
        """The verdict about a text that was judged before."""
        ...

    async def judged(
        self, namespace: str, texts: Iterable[SqlText]
    ) -> Mapping[SqlText, SqlVerdict]:
        """Verdicts about texts; a namespace waits for its own texts only."""
        ...


class Asked:
    """A `SqlJudge` that gives what is known and notes what is missing; for one validation.

    Args:
        verdicts: where verdicts come from.
    """

    def __init__(self, verdicts: SqlVerdicts) -> None:
        self._verdicts = verdicts
        self._learnt: dict[SqlText, SqlVerdict] = {}
        self.missing: set[SqlText] = set()
        """Texts that were asked for and are not judged."""
        self.placeholders = 0
        """How often `NOT_YET` stood for a verdict."""

    def __call__(self, text: SqlText) -> SqlVerdict:
        """The verdict about a text, or one that stands for it."""
        verdict = self._learnt.get(text) or self._verdicts.known(text)
        if verdict is None:
            self.missing.add(text)
            self.placeholders += 1
            return NOT_YET
        self._learnt[text] = verdict
        return verdict

    async def learn(self, namespace: str) -> None:
        """Have judged what is missing."""
        self._learnt.update(await self._verdicts.judged(namespace, self.missing))
        self.missing = set()
