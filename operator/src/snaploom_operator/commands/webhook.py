"""`snaploom operator webhook`: runs the admission webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.cluster.client import WEBHOOK, open_cluster
from snaploom_operator.commands.options import Kubeconfig, SettingsFile
from snaploom_operator.handlers.admission import ReviewServer, admission_registry
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.logs import set_up_logs
from snaploom_operator.process.process import Process
from snaploom_operator.process.webhook import DRAIN_SECONDS, Admission, running_webhook
from snaploom_operator.settings import OperatorSettings, read_settings
from snaploom_operator.store.feed import DECLARATIONS


def webhook(
    *,
    settings: SettingsFile = None,
    kubeconfig: Kubeconfig = None,
    drain: Annotated[
        float,
        Parameter(help="Seconds to keep answering after SIGTERM.", show_default=True),
    ] = DRAIN_SECONDS,
) -> int:
    """Run the admission webhook until SIGTERM or Ctrl-C."""
    read = read_settings(settings)
    set_up_logs(read.log_format, read.log_level)
    process = Process[Admission](
        partial(_opened, settings=read, kubeconfig=kubeconfig, drain=drain)
    )
    server = ReviewServer(process)
    serve(
        process,
        Connection(kubeconfig, None, WEBHOOK),
        read,
        DECLARATIONS,
        admission_registry(server),
        server,
    )
    return 0


@asynccontextmanager
async def _opened(
    process: Process[Admission], settings: OperatorSettings, kubeconfig: Path | None, drain: float
) -> AsyncIterator[Admission]:
    async with (
        open_cluster(kubeconfig, user_agent=WEBHOOK) as cluster,
        running_webhook(process, cluster, settings, drain=drain) as admission,
    ):
        yield admission
