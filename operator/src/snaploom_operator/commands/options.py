"""Options of the commands that talk to a cluster, spelt as kubectl spells them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.connection import default_namespace
from snaploom_operator.cluster.port import Cluster


class OutputForm(StrEnum):
    """Form of a command's result."""

    TEXT = "text"
    JSON = "json"


Form = Annotated[
    OutputForm,
    Parameter(name=["--output", "-o"], show_default=True, help="Form of the result."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ClusterOptions:
    """Which cluster, and where in it."""

    namespace: Annotated[
        str | None, Parameter(name=["--namespace", "-n"], help="Namespace; as kubectl's.")
    ] = None
    kubeconfig: Annotated[
        Path | None, Parameter(help="Kubeconfig; omitted, as kubectl finds it.")
    ] = None
    context: Annotated[
        str | None, Parameter(help="Context of the kubeconfig; omitted, its current one.")
    ] = None

    @property
    def place(self) -> str:
        """The namespace meant.

        Raises:
            SettingsInvalid: the kubeconfig cannot be read, or has no such context.
        """
        return self.namespace or default_namespace(self.kubeconfig, self.context)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Cluster]:
        """The cluster.

        Raises:
            SettingsInvalid: there is no way to one.
        """
        async with open_cluster(self.kubeconfig, context=self.context) as cluster:
            yield cluster
