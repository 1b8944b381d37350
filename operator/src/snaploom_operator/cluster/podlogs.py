"""Streams pod logs line by line, for the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from snaploom.models.times import EpochNanos
from snaploom_operator.cluster.apiresources import PODS
from snaploom_operator.cluster.connection import COMMAND_LINE, connect
from snaploom_operator.cluster.requests import Request, Requests
from snaploom_operator.instants import known_instant

_READ_SECONDS = 24 * 3600.0
"""Read timeout of a followed log."""


@dataclass(frozen=True)
class LogLine:
    """A line of a log."""

    time: EpochNanos
    """Time at which the node received it."""
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
    """Stream the log of a pod's first container since a time in ISO 8601; None for all lines.

    Raises:
        ClusterError: there is no such pod, its container has not started, or it may not be read.
    """
    client = await connect(kubeconfig, context, COMMAND_LINE)
    try:
        asked = {"follow": "true" if is_followed else None, "sinceTime": since}
        given = ((name, value) for name, value in asked.items() if value is not None)
        query = (("timestamps", "true"), *given)
        request = Request("get", PODS, namespace, pod, "log", query=query)
        async with Requests(client, lambda exchange: None).lines(request, _READ_SECONDS) as lines:
            async for line in lines:
                yield _timed(line.decode(errors="replace"))
    finally:
        await client.close()


def _timed(line: str) -> LogLine:
    """Parse the timestamp that the API server puts in front of a line; 0 if it is missing."""
    time, _, text = line.partition(" ")
    instant = known_instant(time)
    return LogLine(EpochNanos(0), line) if instant is None else LogLine(instant, text)
