"""Verdicts without processes: behind the same port, for tests of what asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from snaploom.policy.verdicts import JudgedText, Verdict, judge


class VerdictsInProcess:
    """Judges where it is asked, and lets others have a turn in between."""

    def __init__(self) -> None:
        self._known: dict[JudgedText, Verdict] = {}
        self.asked: list[tuple[str, JudgedText]] = []
        """Who had what judged, in order."""

    def known(self, text: JudgedText) -> Verdict | None:
        return self._known.get(text)

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        found = {}
        for text in texts:
            await asyncio.sleep(0)
            self.asked.append((namespace, text))
            found[text] = self._known[text] = judge(text)
        return found


class VerdictsAtOnce(VerdictsInProcess):
    """Knows every verdict already: for tests of something else, whose passes never wait."""

    def known(self, text: JudgedText) -> Verdict | None:
        return judge(text)
