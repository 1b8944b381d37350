"""What commands read from a cluster: the resources of one namespace, as models."""

from __future__ import annotations

import asyncio
from typing import cast

from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.kinds import KINDS, AnyResource
from snaploom.models.times import EpochNanos
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import OURS
from snaploom_operator.commands.naming import Named
from snaploom_operator.commands.statustree import View
from snaploom_operator.knowledge.parsing import Refused, parse_resource


async def read_view(cluster: Cluster, namespace: str, now: EpochNanos) -> View:
    """Every resource of a namespace.

    What our models refuse (it was written by a newer Snaploom, say) is told apart.

    Raises:
        ClusterError: they cannot be listed.
    """
    listings = await asyncio.gather(
        *(cluster.list(OURS[kind.name], namespace=namespace) for kind in KINDS)
    )
    resources: dict[str, AnyResource] = {}
    unread: dict[str, str] = {}
    for stored in (stored for listing in listings for stored in listing.items):
        parsed = parse_resource(stored)
        if isinstance(parsed, Refused):
            identity = f"{parsed.ref.kind}/{parsed.ref.name}"
            unread[identity] = "; ".join(f"{f.path}: {f.message}" for f in parsed.findings)
        else:
            resources[parsed.identity] = cast(AnyResource, parsed)
    return View(resources, now, namespace, unread)


def not_there(named: Named, view: View) -> InvalidDeclarations:
    """The error that a view has no such resource."""
    identity = str(named)
    if identity in view.unread:
        finding = make_finding(
            "SL191",
            f"this resource cannot be read: {view.unread[identity]}",
            resource=identity,
            hint="it may be of a newer Snaploom: upgrade this one",
        )
    else:
        known = sorted(key for key in view.resources if key.startswith(f"{named.kind.name}/"))
        finding = make_finding(
            "SL191",
            f"there is no such resource in the namespace {view.namespace}",
            resource=identity,
            found=identity,
            expected=", ".join(known[:12]) or f"{named.kind.name}/NAME; there is none",
            hint="name another namespace with `-n`",
        )
    return InvalidDeclarations([finding])
