"""Logs of pods, line by line; only people's commands read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from snaploom_operator.cluster.connection import connect
from snaploom_operator.cluster.requests import Request, Requests
from snaploom_operator.cluster.resources import PODS

_SILENCE = 24 * 3600.0
"""Seconds without a line after which a log that is followed counts as dead."""


async def pod_log(
    namespace: str,
    pod: str,
    *,
    is_followed: bool,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> AsyncIterator[str]:
    """The lines that a pod's first container wrote, and those that it writes from now on.

    Raises:
        ClusterError: there is no such pod, its container has not started, or it may not be read.
    """
    client = await connect(kubeconfig, context)
    try:
        query = (("follow", "true"),) if is_followed else ()
        request = Request("get", PODS, namespace, pod, "log", query=query)
        async with Requests(client, lambda exchange: None).lines(request, _SILENCE) as lines:
            async for line in lines:
                yield line.decode(errors="replace")
    finally:
        await client.close()
