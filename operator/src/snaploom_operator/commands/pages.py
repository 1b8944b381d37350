"""`snaploom operator pages`: serves the pages of outputs in a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.connection import PAGES
from snaploom_operator.commands.processoptions import Kubeconfig, SettingsFile, stop_requested
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.pages.pagesprocess import running_pages
from snaploom_operator.process.logformat import set_up_logs
from snaploom_operator.process.settingsfile import read_settings


def pages(
    *,
    settings: SettingsFile = None,
    kubeconfig: Kubeconfig = None,
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
    stop = stop_requested()
    async with (
        open_cluster(kubeconfig, user_agent=PAGES) as cluster,
        running_pages(cluster, settings),
    ):
        await stop.wait()
