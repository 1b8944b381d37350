"""Handlers of watch events: put what happened into the store, wake whom it concerns, return.

They await nothing. kopf handles the events of one object one after the other, so that a pass in a
handler would decide on a store that has not seen the object's later events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import kopf

from snaploom_operator.objects import JsonObject
from snaploom_operator.process.process import Parts, Process
from snaploom_operator.store.feed import Watched


def add_event_handlers(registry: kopf.OperatorRegistry, kinds: Iterable[Watched]) -> None:
    """Register a handler for the events of each kind."""
    for kind in kinds:
        resource = kind.resource
        kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(changed)


async def changed(event: kopf.RawEvent, memo: Process[Parts], **_: object) -> None:
    """Put a listed or changed object into the store, or remove a deleted one."""
    stored = cast("JsonObject", event["object"])
    memo.parts.feed.take(stored, is_deleted=event["type"] == "DELETED")
