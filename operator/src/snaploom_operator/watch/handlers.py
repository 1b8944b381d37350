"""kopf's handlers, which pass watch events on.

They are registered for the installed kinds, in a registry of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import kopf

from snaploom_operator.objects import JsonObject
from snaploom_operator.watch.watchedkinds import Watched

Feed = Callable[[str | None, JsonObject], None]
"""Receives an event: its type, or None for the initial list of a watch, and the object."""
Login = Callable[[], Awaitable[kopf.ConnectionInfo]]


def registry_of(kinds: Iterable[Watched], feed: Feed, login: Login) -> kopf.OperatorRegistry:
    """Handlers for kinds.

    Args:
        kinds: the watched kinds.
        feed: receives events.
        login: returns the connection; called again when credentials expire.
    """
    registry = kopf.OperatorRegistry()

    # kopf's arguments are untyped; the event is an object of the API.
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
