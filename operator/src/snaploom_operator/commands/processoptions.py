"""Options and end of the commands that run a process of the operator."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

SettingsFile = Annotated[
    Path | None, Parameter(help="Settings file (YAML); default: built-in defaults.")
]
Kubeconfig = Annotated[
    Path | None,
    Parameter(help="Kubeconfig; default as in kubectl, or the pod's service account."),
]


def stop_requested() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C from here on; called in a running loop."""
    requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, requested.set)
    return requested
