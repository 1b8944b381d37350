"""Options and names of commands that use a cluster, and the view of a namespace that they read."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.common import EpochNanos
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.kinds import KINDS, AnyResource, Kind
from snaploom_operator.cluster.client import (
    COMMAND_LINE,
    KubernetesCluster,
    default_namespace,
    open_cluster,
)
from snaploom_operator.cluster.port import OURS, Cluster
from snaploom_operator.decision import Unparsable
from snaploom_operator.process.process import AnyParts, Process
from snaploom_operator.store.entries import parse_resource

RUNNABLE = ("OutputDataset", "SkippingIndex")
"""Kinds that have runs."""


@dataclass(frozen=True)
class Named:
    """The kind and name of a resource."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name}/{self.name}"


def parse_name(text: str) -> Named:
    """Parse `KIND/NAME`, where KIND is a plural, singular or short name.

    A name without a kind is an OutputDataset.

    Raises:
        InvalidDeclarations: there is no such kind, or no name.
    """
    kind_text, slash, name = text.partition("/")
    if not slash:
        kind_text, name = "OutputDataset", text
    wanted = kind_text.lower()
    kinds = (kind for kind in KINDS if wanted in (kind.singular, kind.plural, kind.short_name))
    kind = next(kinds, None)
    if kind is not None and name:
        return Named(kind, name)
    finding = make_finding(
        "SL191",
        "unknown resource kind or missing name",
        path="KIND/NAME",
        found=text,
        expected="KIND/NAME, or the name of an OutputDataset; kinds: "
        + ", ".join(f"{kind.name} ({kind.short_name})" for kind in KINDS),
        hint=did_you_mean(kind_text, [kind.name for kind in KINDS]),
    )
    raise InvalidDeclarations([finding])


def parse_runnable(text: str) -> Named:
    """Parse `KIND/NAME` of a kind with runs.

    Raises:
        InvalidDeclarations: there is no such kind, it has no runs, or there is no name.
    """
    named = parse_name(text)
    if named.kind.name in RUNNABLE:
        return named
    finding = make_finding(
        "SL191",
        f"a {named.kind.name} has no runs of its own",
        path="KIND/NAME",
        found=text,
        expected=" or ".join(f"{kind}/NAME" for kind in RUNNABLE),
        hint="name the output or the index that uses it; `snaploom status` lists them",
    )
    raise InvalidDeclarations([finding])


SettingsFile = Annotated[
    Path | None, Parameter(help="Settings file (YAML); default: built-in defaults.")
]
Kubeconfig = Annotated[
    Path | None,
    Parameter(help="Kubeconfig; default as in kubectl, or the pod's service account."),
]


class OutputForm(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


Form = Annotated[
    OutputForm,
    Parameter(name=["--output", "-o"], show_default=True, help="Form of the result."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ClusterOptions:
    """The cluster and namespace of a command."""

    namespace: Annotated[
        str | None, Parameter(name=["--namespace", "-n"], help="Namespace; default as in kubectl.")
    ] = None
    kubeconfig: Annotated[Path | None, Parameter(help="Kubeconfig; default as in kubectl.")] = None
    context: Annotated[
        str | None, Parameter(help="Context of the kubeconfig; default: its current one.")
    ] = None

    @property
    def place(self) -> str:
        """The selected namespace.

        Raises:
            SettingsInvalid: the kubeconfig cannot be read, or has no such context.
        """
        return self.namespace or default_namespace(self.kubeconfig, self.context)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[KubernetesCluster]:
        """Connect to the cluster.

        Raises:
            SettingsInvalid: no cluster is configured.
        """
        async with open_cluster(
            self.kubeconfig, context=self.context, user_agent=COMMAND_LINE
        ) as cluster:
            yield cluster


@dataclass(frozen=True)
class NamespaceView:
    """The resources of one namespace, by `Kind/name`, and when they were read."""

    resources: Mapping[str, AnyResource]
    now: EpochNanos
    namespace: str
    unread: Mapping[str, str] = field(default_factory=dict)
    """The cause if a resource cannot be parsed, by `Kind/name`."""


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


@asynccontextmanager
async def connected(
    kubeconfig: Path | None,
    user_agent: str,
    running: Callable[[Process[AnyParts], Cluster], AbstractAsyncContextManager[AnyParts]],
    process: Process[AnyParts],
) -> AsyncIterator[AnyParts]:
    """Run the parts of a process over its own connection to the cluster."""
    async with (
        open_cluster(kubeconfig, user_agent=user_agent) as cluster,
        running(process, cluster) as parts,
    ):
        yield parts
