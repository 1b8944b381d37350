"""Logs of pods, line by line; only people's commands read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from snaploom.models.times import EpochNanos
from snaploom_operator.cluster.connection import connect
from snaploom_operator.cluster.requests import Request, Requests
from snaploom_operator.cluster.resources import PODS
from snaploom_operator.instants import known_instant

_SILENCE = 24 * 3600.0
"""Seconds without a line after which a log that is followed counts as dead."""


@dataclass(frozen=True)
class LogLine:
    """A line of a log."""

    time: EpochNanos
    """When the node took it in."""
    text: str


async def pod_log(
    namespace: str,
    pod: str,
    *,
    is_followed: bool,
    since: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> AsyncIterator[LogLine]:
    """The lines that a pod's first container wrote, and those that it writes from now on.

    Args:
        namespace: where it is.
        pod: its name.
        is_followed: whether to wait for what it writes from now on.
        since: earlier lines are left out, in ISO 8601; None for all.
        kubeconfig: how the cluster is reached; None as kubectl finds it.
        context: of the kubeconfig; None for its current one.

    Raises:
        ClusterError: there is no such pod, its container has not started, or it may not be read.
    """
    client = await connect(kubeconfig, context)
    try:
        asked = {"follow": "true" if is_followed else None, "sinceTime": since}
        given = ((name, value) for name, value in asked.items() if value is not None)
        query = (("timestamps", "true"), *given)
        request = Request("get", PODS, namespace, pod, "log", query=query)
        async with Requests(client, lambda exchange: None).lines(request, _SILENCE) as lines:
            async for line in lines:
                yield _timed(line.decode(errors="replace"))
    finally:
        await client.close()


def _timed(line: str) -> LogLine:
    """A line with its time, which the API server puts in front; without one it is of no time."""
    time, _, text = line.partition(" ")
    instant = known_instant(time)
    return LogLine(EpochNanos(0), line) if instant is None else LogLine(instant, text)
