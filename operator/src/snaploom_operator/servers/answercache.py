"""Remembers answers for seconds: of the API server, and what takes long to compute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class _Held(Generic[_Answer]):
    answer: asyncio.Future[_Answer]
    until: float


class AnswerCache(Generic[_Answer]):
    """Answers by key; those who ask for the same at once share one request.

    Args:
        seconds: how long an answer counts, from when it was asked for.
        most: answers that are held; beyond it the oldest is dropped.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._held: dict[tuple[str, ...], _Held[_Answer]] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def get(self, key: tuple[str, ...], ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The answer; a failure is not remembered.

        Args:
            key: what is asked.
            ask: asks it.
        """
        held = self._held.get(key)
        if held is None or held.until <= self._clock():
            self._held.pop(key, None)
            while len(self._held) >= self._most:
                del self._held[next(iter(self._held))]
            held = _Held(asyncio.ensure_future(ask()), self._clock() + self._seconds)
            self._held[key] = held
        try:
            # One who goes away must not end what others wait for.
            return await asyncio.shield(held.answer)
        except BaseException:
            if held.answer.done() and self._held.get(key) is held:
                del self._held[key]
            raise
