"""`snaploom operator webhook`: runs the admission webhook."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.admission.webhookprocess import DRAIN_SECONDS, running_webhook
from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.cluster.connection import WEBHOOK
from snaploom_operator.commands.processoptions import Kubeconfig, SettingsFile, stop_requested
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.process.logformat import set_up_logs
from snaploom_operator.process.settingsfile import read_settings


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
    asyncio.run(_serve(read, kubeconfig, drain))
    return 0


async def _serve(settings: OperatorSettings, kubeconfig: Path | None, drain: float) -> None:
    stop = stop_requested()
    async with (
        open_cluster(kubeconfig, user_agent=WEBHOOK) as cluster,
        running_webhook(cluster, settings, drain=drain),
    ):
        await stop.wait()
