"""`snaploom operator webhook`: checks resources before the API server stores them."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.admission.running import DRAIN_SECONDS, running_webhook
from snaploom_operator.cluster.adapter import open_cluster
from snaploom_operator.process.logs import set_up_logs
from snaploom_operator.process.settingsfile import read_settings
from snaploom_operator.settings import OperatorSettings


def webhook(
    *,
    settings: Annotated[
        Path | None, Parameter(help="The settings, a YAML file; omitted, the defaults.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="How to reach the cluster; omitted, as kubectl does, or as a pod."),
    ] = None,
    drain: Annotated[
        float,
        Parameter(help="Seconds to go on answering after SIGTERM.", show_default=True),
    ] = DRAIN_SECONDS,
) -> int:
    """Answer the API server's reviews until SIGTERM or Ctrl-C."""
    read = read_settings(settings)
    set_up_logs(read.log_format, read.log_level)
    asyncio.run(_serve(read, kubeconfig, drain))
    return 0


async def _serve(settings: OperatorSettings, kubeconfig: Path | None, drain: float) -> None:
    told_to_end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    async with open_cluster(kubeconfig) as cluster, running_webhook(cluster, settings, drain=drain):
        await told_to_end.wait()
