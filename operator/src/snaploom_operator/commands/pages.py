"""`snaploom operator pages`: serves the pages of outputs in a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from snaploom_operator.cluster.client import PAGES, open_cluster
from snaploom_operator.commands.options import Kubeconfig, SettingsFile
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.logs import set_up_logs
from snaploom_operator.process.pages import SHOWN_KINDS, Pages, running_pages
from snaploom_operator.process.process import Process
from snaploom_operator.settings import OperatorSettings, read_settings


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
    process = Process[Pages](partial(_opened, settings=read, kubeconfig=kubeconfig))
    serve(process, Connection(kubeconfig, None, PAGES), read, SHOWN_KINDS)
    return 0


@asynccontextmanager
async def _opened(
    process: Process[Pages], settings: OperatorSettings, kubeconfig: Path | None
) -> AsyncIterator[Pages]:
    async with (
        open_cluster(kubeconfig, user_agent=PAGES) as cluster,
        running_pages(process, cluster, settings) as pages,
    ):
        yield pages
