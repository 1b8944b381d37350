"""Events about a deleted resource: how its deletion ended, and what data was kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from snaploom.models.times import EpochNanos
from snaploom_operator.cluster.apiresources import EVENTS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.loglines import Line
from snaploom_operator.errors import ClusterError
from snaploom_operator.instants import known_instant
from snaploom_operator.objectmetadata import mapping_in, text_in
from snaploom_operator.objects import JsonObject, Ref

EVENT = "event"
NAMESPACE, DEFAULT = "Namespace", "default"
"""Events of a terminating namespace regard the namespace, and are in the namespace `default`."""


async def past_events(cluster: Cluster, resource: Ref) -> list[Line]:
    """Events about a resource, the oldest first; the API server keeps them for an hour.

    Args:
        cluster: the cluster.
        resource: the resource; earlier resources of the same name are included.
    """
    near, of_namespace = await asyncio.gather(
        _listed(cluster, resource.namespace), _listed(cluster, DEFAULT)
    )
    own = (_line(event, event_note(event)) for event in near if _is_about(event, resource))
    return sorted([*own, *_of_namespace(of_namespace, resource)])


def event_note(event: JsonObject) -> str:
    """Type, reason and message of an event."""
    return f"{text_in(event, 'type')} {text_in(event, 'reason')}: {text_in(event, 'note')}"


async def _listed(cluster: Cluster, namespace: str) -> tuple[JsonObject, ...]:
    """Events of a namespace; empty if they cannot be listed."""
    try:
        return (await cluster.list(EVENTS, namespace=namespace)).items
    except ClusterError:
        return ()


def _is_about(event: JsonObject, resource: Ref) -> bool:
    regarding = mapping_in(event, "regarding")
    return (text_in(regarding, "kind"), text_in(regarding, "name")) == (
        resource.kind,
        resource.name,
    )


def _of_namespace(events: tuple[JsonObject, ...], resource: Ref) -> Iterator[Line]:
    start = f"{resource.kind}/{resource.name}: "
    namespace = Ref(NAMESPACE, "", resource.namespace)
    for event in events:
        if _is_about(event, namespace) and text_in(event, "note").startswith(start):
            yield _line(event, event_note(event))


def _line(event: JsonObject, text: str) -> Line:
    last = text_in(mapping_in(event, "series"), "lastObservedTime")
    moment = known_instant(last or text_in(event, "eventTime"))
    return Line(EpochNanos(0) if moment is None else moment, EVENT, text)
