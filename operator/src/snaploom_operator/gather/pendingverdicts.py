"""Verdicts that are computed in the background; the resource is requeued afterwards.

A pass that waited for a verdict would occupy a worker that other namespaces need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from snaploom_operator.objects import Ref
from snaploom_operator.textverdicts import RecordingJudge, TextVerdicts


class PendingVerdicts:
    """Pending verdicts by resource; `wake` requeues one when its verdicts are known."""

    def __init__(self, verdicts: TextVerdicts, wake: Callable[[Ref], None]) -> None:
        self._verdicts = verdicts
        self._wake = wake
        self._asked: dict[Ref, tuple[int, RecordingJudge]] = {}
        """By resource: the hash of its inputs, and its judge with its verdicts. It is kept until
        the resource is checked or changes: the shared cache may be too small for all of its
        texts."""
        self._under_way: dict[Ref, asyncio.Task[None]] = {}
        self._failures: dict[Ref, Exception] = {}

    def is_under_way(self, ref: Ref) -> bool:
        """Return whether verdicts of a resource are being computed."""
        return ref in self._under_way

    def judge(self, ref: Ref, basis: int) -> RecordingJudge:
        """The judge for one check of a resource with some hash of its inputs.

        Raises:
            TextNotJudged: its last missing verdicts could not be computed.
        """
        failure = self._failures.pop(ref, None)
        if failure is not None:
            raise failure
        kept = self._asked.get(ref)
        if kept is None or kept[0] != basis:
            kept = self._asked[ref] = basis, RecordingJudge(self._verdicts)
        return kept[1]

    def begin(self, ref: Ref) -> None:
        """Compute the verdicts that the last check of a resource was missing."""
        self._under_way[ref] = asyncio.create_task(self._fetch(ref, self._asked[ref][1]))

    def forget(self, ref: Ref) -> None:
        """Drop the state of a resource that is checked or deleted."""
        self._asked.pop(ref, None)
        self._failures.pop(ref, None)
        task = self._under_way.pop(ref, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Cancel all pending verdicts."""
        tasks = tuple(self._under_way.values())
        for ref in tuple(self._under_way):
            self.forget(ref)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, ref: Ref, asked: RecordingJudge) -> None:
        try:
            await asked.fetch_missing(ref.namespace)
        except Exception as error:  # noqa: BLE001 - the next check of the resource raises it
            self._failures[ref] = error
        self._under_way.pop(ref, None)
        self._wake(ref)
