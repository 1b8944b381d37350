"""Compares the kinds that the API server serves with those that this operator was built with.

An older CustomResourceDefinition lacks fields, and the API server silently drops them from every
object (rule R17). The OpenAPI document shows that to every account, where reading
CustomResourceDefinitions takes a right on the whole cluster. What an older schema refuses rather
than drops, such as a new value of an enum, needs no check: the writer sees the refusal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import JsonValue

from snaploom.models.common import GROUP
from snaploom.models.crds import crd_name
from snaploom.models.kinds import KIND_BY_NAME, KINDS
from snaploom.models.schema import structural_schema
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ClusterError
from snaploom_operator.objectmetadata import mapping_in
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.store.store import NOTHING, Store

LISTED = 5
"""Fields in a message; the others are counted."""
UPDATE = "snaploom crds | kubectl apply --server-side --force-conflicts -f -"

_KEEPS_ALL = "x-kubernetes-preserve-unknown-fields"

_log = logging.getLogger(__name__)


async def compare_kinds(cluster: Cluster, store: Store) -> frozenset[Ref]:
    """Note in the store which served kinds are outdated; the resources to reconcile.

    A failure leaves what was found before: it is logged, and the next call tries again.
    """
    try:
        served = await cluster.schemas()
    except ClusterError as error:
        _log.warning(
            "cannot compare the CustomResourceDefinitions of %s with this version: %s; fields that "
            "they lack would be dropped unnoticed",
            GROUP,
            error.message,
        )
        return NOTHING
    found = await asyncio.to_thread(outdated_kinds, served)
    for kind in sorted(found.keys() | store.outdated.keys()):
        if kind not in found:
            _log.info("%s: the CustomResourceDefinition is not outdated any more", kind)
        elif found[kind] != store.outdated.get(kind):
            _log.warning("%s: %s", kind, found[kind])
    return store.set_outdated(found)


def outdated_kinds(served: Mapping[str, JsonObject]) -> dict[str, str]:
    """Why the CustomResourceDefinition of a kind is outdated, by kind; the others are left out.

    Args: served: schemas of kinds, as `Cluster.schemas` has them.
    """
    found = {}
    for kind in served.keys() & KIND_BY_NAME.keys():
        fields = sorted(_dropped(_known()[kind], served[kind], ""))
        if fields:
            more = f" and {len(fields) - LISTED} more" if len(fields) > LISTED else ""
            found[kind] = (
                f"{crd_name(KIND_BY_NAME[kind])} is older than the operator: the API server drops "
                f"{', '.join(fields[:LISTED])}{more}, and no run is started; update it with "
                f"`{UPDATE}` or the chart's crds.enabled, then apply again what has such fields"
            )
    return found


@cache
def _known() -> dict[str, JsonObject]:
    """The schemas of this version: spec and status, a quarter of a second's work."""
    return {kind.name: structural_schema(kind.model, ("spec", "status")) for kind in KINDS}


def _dropped(known: JsonObject, served: JsonObject, path: str) -> Iterator[str]:
    """Paths of fields that a schema has and another drops, the outermost ones only."""
    if served.get(_KEEPS_ALL) is True:
        return
    others = served.get("additionalProperties")
    if known.get(_KEEPS_ALL) is True or (known.get("additionalProperties") and not others):
        yield f"{path}.*"
    of_served = mapping_in(served, "properties")
    for name, schema in mapping_in(known, "properties").items():
        field = f"{path}.{name}" if path else name
        if name in of_served or others:
            yield from _both(schema, of_served.get(name, others), field)
        else:
            yield field
    yield from _both(known.get("items"), served.get("items"), f"{path}[]")
    yield from _both(known.get("additionalProperties"), others, f"{path}.*")


def _both(known: JsonValue, served: JsonValue, path: str) -> Iterator[str]:
    if isinstance(known, Mapping) and isinstance(served, Mapping):
        yield from _dropped(known, served, path)
