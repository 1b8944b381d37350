"""Texts of SQL that are judged while nobody waits: the resource is looked at again afterwards.

A pass that waited for a verdict would keep a worker of the loop from all other namespaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from snaploom_operator.objects import Ref
from snaploom_operator.sqlverdicts import Asked, SqlVerdicts


class Learning:
    """What each resource waits for.

    Args:
        verdicts: has texts judged.
        wake: has a resource looked at again.
    """

    def __init__(self, verdicts: SqlVerdicts, wake: Callable[[Ref], None]) -> None:
        self._verdicts = verdicts
        self._wake = wake
        self._asked: dict[Ref, tuple[int, Asked]] = {}
        """By resource: the hash of what it is judged by, and what was learnt for it. It is kept
        until the resource is judged, or changes: the common store of verdicts may be too small for
        all of its texts."""
        self._under_way: dict[Ref, asyncio.Task[None]] = {}
        self._failures: dict[Ref, Exception] = {}

    def is_under_way(self, ref: Ref) -> bool:
        """Whether texts of a resource are being judged."""
        return ref in self._under_way

    def asked(self, ref: Ref, basis: int) -> Asked:
        """The judge for one look at a resource.

        Args:
            ref: its key.
            basis: hash of what it is judged by.

        Raises:
            SqlNotJudged: the texts that it asked for last could not be judged.
        """
        failure = self._failures.pop(ref, None)
        if failure is not None:
            raise failure
        kept = self._asked.get(ref)
        if kept is None or kept[0] != basis:
            kept = self._asked[ref] = basis, Asked(self._verdicts)
        return kept[1]

    def begin(self, ref: Ref) -> None:
        """Have judged what the last look at a resource was missing."""
        self._under_way[ref] = asyncio.create_task(self._learn(ref, self._asked[ref][1]))

    def forget(self, ref: Ref) -> None:
        """A resource is judged, or gone."""
        self._asked.pop(ref, None)
        self._failures.pop(ref, None)
        task = self._under_way.pop(ref, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Wait for nothing any more."""
        tasks = tuple(self._under_way.values())
        for ref in tuple(self._under_way):
            self.forget(ref)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self, ref: Ref, asked: Asked) -> None:
        try:
            await asked.learn(ref.namespace)
        except Exception as error:  # noqa: BLE001 - the next look at the resource raises it
            self._failures[ref] = error
        self._under_way.pop(ref, None)
        self._wake(ref)
