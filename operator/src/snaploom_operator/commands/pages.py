"""`snaploom operator pages`: serves the pages of outputs in a cluster."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.connection import PAGES
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.pages.pagesprocess import running_pages
from snaploom_operator.process.logformat import set_up_logs
from snaploom_operator.process.settingsfile import read_settings


def pages(
    *,
    settings: Annotated[
        Path | None, Parameter(help="Settings file (YAML); default: built-in defaults.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="Kubeconfig; default as in kubectl, or the pod's service account."),
    ] = None,
) -> int:
    """Serve the pages of outputs to users of the cluster, until SIGTERM or Ctrl-C.

    Each request needs a bearer token. The API server decides whose it is, and which namespaces its
    user sees: those whose outputs, sources and indexes they may list. Nothing is written.
    """
    read = read_settings(settings)
    set_up_logs(read.log_format, read.log_level)
    asyncio.run(_serve(read, kubeconfig))
    return 0


async def _serve(settings: OperatorSettings, kubeconfig: Path | None) -> None:
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    async with (
        open_cluster(kubeconfig, user_agent=PAGES) as cluster,
        running_pages(cluster, settings),
    ):
        await stop_requested.wait()
