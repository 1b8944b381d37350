"""kopf's handlers: an event of a watch is handed on, and that is all.

They are made for the kinds that the cluster has, in a registry of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import kopf

from snaploom_operator.objects import JsonObject
from snaploom_operator.watching.kinds import Watched

Feed = Callable[[str | None, JsonObject], None]
"""Takes an event in: its type, None for what is told when a watch begins, and the object."""
Login = Callable[[], Awaitable[kopf.ConnectionInfo]]


def registry_of(kinds: Iterable[Watched], feed: Feed, login: Login) -> kopf.OperatorRegistry:
    """Handlers for kinds.

    Args:
        kinds: what is watched.
        feed: takes events in.
        login: tells how to reach the API server; asked again when it no longer lets us in.
    """
    registry = kopf.OperatorRegistry()

    # What kopf passes is of no declared type; the event is an object of the API.
    async def on_event(event: Any, **_: Any) -> None:
        feed(event["type"], event["object"])

    async def on_login(**_: Any) -> kopf.ConnectionInfo:
        return await login()

    kopf.on.login(registry=registry)(on_login)
    for watched in kinds:
        resource = watched.resource
        kopf.on.event(
            resource.group, resource.version, resource.plural, id=watched.key, registry=registry
        )(on_event)
    return registry
