"""Events about a deleted resource: how its deletion ended, and what data was kept."""

from __future__ import annotations

import asyncio

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
    """Events about a resource and earlier ones of its name, the oldest first.

    The API server keeps them for an hour.
    """
    near, of_namespace = await asyncio.gather(
        _listed(cluster, resource.namespace), _listed(cluster, DEFAULT)
    )
    start, about = f"{resource.identity}: ", Ref(NAMESPACE, "", resource.namespace)
    own = (event for event in near if _is_about(event, resource))
    others = (event for event in of_namespace if _is_about(event, about))
    named = (event for event in others if text_in(event, "note").startswith(start))
    return sorted(map(_line, (*own, *named)))


async def _listed(cluster: Cluster, namespace: str) -> tuple[JsonObject, ...]:
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


def _line(event: JsonObject) -> Line:
    text = f"{text_in(event, 'type')} {text_in(event, 'reason')}: {text_in(event, 'note')}"
    last = text_in(mapping_in(event, "series"), "lastObservedTime")
    moment = known_instant(last or text_in(event, "eventTime"))
    return Line(EpochNanos(0) if moment is None else moment, EVENT, text)
