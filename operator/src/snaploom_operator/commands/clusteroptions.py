"""Options of the commands that use a cluster or run a process, named as in kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.cluster.adapter import KubernetesCluster, open_cluster
from snaploom_operator.cluster.connection import COMMAND_LINE, default_namespace

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
    Parameter(name=["--output", "-o"], show_default=True, help="Output format."),
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
