"""Reads the resources of one namespace for commands."""

from __future__ import annotations

import asyncio
from typing import cast

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.kinds import KINDS, AnyResource
from snaploom.models.times import EpochNanos
from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.resourcenames import Named
from snaploom_operator.commands.statustree import NamespaceView
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.resourceparser import parse_resource


async def read_view(cluster: Cluster, namespace: str, now: EpochNanos) -> NamespaceView:
    """Read all resources of a namespace; unparsable ones are listed separately.

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
        if isinstance(parsed, Unparsable):
            unread[parsed.ref.identity] = "; ".join(
                f"{f.path}: {f.message}" for f in parsed.findings
            )
        else:
            resources[parsed.identity] = cast(AnyResource, parsed)
    return NamespaceView(resources, now, namespace, unread)


def not_found_error(named: Named, view: NamespaceView) -> InvalidDeclarations:
    """The error for a resource that is missing or unparsable."""
    identity = str(named)
    if identity in view.unread:
        finding = make_finding(
            "SL191",
            f"this resource cannot be read: {view.unread[identity]}",
            resource=identity,
            hint="it may have been written by a newer Snaploom: upgrade this one",
        )
    else:
        known = sorted(key for key in view.resources if key.startswith(f"{named.kind.name}/"))
        finding = make_finding(
            "SL191",
            f"there is no such resource in the namespace {view.namespace}",
            resource=identity,
            found=identity,
            expected=", ".join(known[:12]) or f"{named.kind.name}/NAME; there is none",
            hint=did_you_mean(identity, known) or "name another namespace with `-n`",
        )
    return InvalidDeclarations([finding])
