"""Writes the status of a resource if it changed; truncates one that is too large."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

from pydantic import JsonValue

from snaploom.models.common import ResourceStatus
from snaploom.models.kinds import AnyResource
from snaploom.models.resource import Resource
from snaploom_operator.cluster.port import OURS, Cluster, difference
from snaploom_operator.conditions import MOST_BYTES
from snaploom_operator.decision import ObservedResource, Unparsable
from snaploom_operator.errors import ObjectChanged
from snaploom_operator.objects import JsonObject, Metadata, Ref, mapping_in

# Truncates a status that is too large; the last resort after `conditions.fit_text`.

SHORTEST_TEXT = 64
"""Characters below which a text is not truncated: names and times."""
KEPT = "conditions"


def cut_to_size(status: JsonObject, most: int = MOST_BYTES) -> dict[str, JsonValue]:
    """The status, truncated to some bytes of compact JSON."""
    result = copy.deepcopy(dict(status))
    while _size(result) > most and (_halve_list(result) or _halve_text(result)):
        pass
    return result


def _halve_list(status: dict[str, JsonValue]) -> bool:
    lists = [value for _, key, value in _parts(status) if isinstance(value, list) and key != KEPT]
    longest = max(lists, key=_size, default=[])
    is_shorter = bool(longest)
    del longest[len(longest) // 2 :]
    return is_shorter


def _halve_text(status: dict[str, JsonValue]) -> bool:
    texts = [part for part in _parts(status) if isinstance(part[2], str)]
    longest = max(texts, key=lambda part: _size(part[2]), default=None)
    if longest is None or len(str(longest[2])) < SHORTEST_TEXT:
        return False
    holder, key, text = longest
    holder[key] = str(text)[: len(str(text)) // 2 - 1] + "…"
    return True


def _parts(
    value: JsonValue | dict[str, JsonValue],
) -> Iterator[tuple[dict[str, JsonValue], str, JsonValue]]:
    """Every member of every mapping: the mapping, the key, the value."""
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        for key, member in list(value.items()):
            yield value, key, member
            yield from _parts(member)


def _size(value: JsonValue | dict[str, JsonValue]) -> int:
    return len(
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    )


# Writes the status of a resource if it changed.


async def write_status(
    held: Resource | ObservedResource | Unparsable, status: ResourceStatus, cluster: Cluster
) -> JsonObject | None:
    """Write the status of a resource if it changed, truncated if it is too large.

    Returns:
        The resource as it is stored now; None if nothing was written.

    Raises:
        ObjectChanged: the resource was changed or recreated since.
        ObjectMissing: it is gone.
    """
    wanted = cut_to_size(status.dump())
    if isinstance(held, Unparsable):
        return await _write_over_unparsable(held, wanted, cluster)
    resource = held.resource if isinstance(held, ObservedResource) else held
    assert isinstance(resource, AnyResource)  # there are no other kinds
    before = resource.status.dump() if resource.status is not None else {}
    stored: JsonObject = {"metadata": resource.metadata.dump(), "status": before}
    ref = Ref.to(resource)
    written = await _write(ref, stored, wanted, cluster)
    if resource.status is None:
        # A status that our models refuse was read as missing; remove its other fields.
        written = await _write(ref, written, wanted, cluster)
    return _if_changed(stored, written)


async def _write_over_unparsable(
    held: Unparsable, wanted: JsonObject, cluster: Cluster
) -> JsonObject | None:
    if held.status is not None and not difference(held.status.dump(), wanted):
        return None
    ref = held.ref
    stored = await cluster.get(OURS[ref.kind], ref.namespace, ref.name)
    if Metadata.of(stored).uid != held.uid:
        raise ObjectChanged(
            f"{ref} was recreated", hint="nothing: the new object is reconciled by itself"
        )
    return _if_changed(stored, await _write(ref, stored, wanted, cluster))


async def _write(ref: Ref, stored: JsonObject, wanted: JsonObject, cluster: Cluster) -> JsonObject:
    patch = difference(mapping_in(stored, "status"), wanted)
    if not patch:
        return stored
    held = Metadata.of(stored)
    metadata: JsonObject = {"resourceVersion": held.resource_version, "uid": held.uid}
    body: JsonObject = {"metadata": dict(metadata), "status": patch}
    return await cluster.patch(OURS[ref.kind], ref.namespace, ref.name, body, subresource="status")


def _if_changed(before: JsonObject, after: JsonObject) -> JsonObject | None:
    """The written object; None if pruning by the schema left it unchanged."""
    is_same = Metadata.of(before).resource_version == Metadata.of(after).resource_version
    return None if is_same else after
