"""`snaploom operator run`: makes the declarations in a cluster live.

Exit codes: 0 stopped by SIGTERM; 1 the cluster does not answer, lacks something or refuses it; 2
the settings, or the way to the cluster, are wrong; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from snaploom_operator.process.logs import set_up_logs
from snaploom_operator.process.running import Place, running_operator
from snaploom_operator.process.settingsfile import read_settings
from snaploom_operator.settings import OperatorSettings

INTERRUPTED = 130
NEW_OBJECTS = 10_000
"""After which Python looks for circles among new objects; with its default of 700, listing ten
thousand resources takes a tenth longer."""


def run(
    *,
    settings: Annotated[
        Path | None, Parameter(help="The settings, a YAML file; omitted, the defaults.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="How to reach the cluster; omitted, as kubectl does, or as a pod."),
    ] = None,
    context: Annotated[
        str | None, Parameter(help="Context of the kubeconfig; omitted, its current one.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        Parameter(
            name=["--namespace", "-n"],
            consume_multiple=True,
            help="Namespaces to look after, instead of those of the settings.",
        ),
    ] = None,
    local: Annotated[
        bool,
        Parameter(
            help="On a developer's machine: run jobs of the submitter `Local` as processes, and "
            "need nothing in the cluster but the CustomResourceDefinitions."
        ),
    ] = False,
    local_workers: Annotated[
        int,
        Parameter(
            help="Jobs to run at once with --local.",
            validator=validators.Number(gte=1, lte=64),
            show_default=True,
        ),
    ] = 1,
) -> int:
    """Look after resources until SIGTERM or Ctrl-C."""
    read = _with_options(read_settings(settings), settings, namespace, local)
    set_up_logs(read.log_format, read.log_level)
    gc.set_threshold(NEW_OBJECTS)
    return asyncio.run(_run(read, Place(kubeconfig, context, local, local_workers)))


def _with_options(
    read: OperatorSettings, file: Path | None, namespaces: list[str] | None, is_local: bool
) -> OperatorSettings:
    """What the command line says, over what the settings say.

    Without settings nobody reads the logs but a person, and on a developer's machine the usual
    ports may be taken.
    """
    changes: dict[str, object] = {}
    if namespaces:
        changes["watch_namespaces"] = tuple(dict.fromkeys(namespaces))
    if file is None:
        changes["log_format"] = "text"
    if file is None and is_local:
        changes |= {"health_port": 0, "metrics_port": 0}
    return read.model_copy(update=changes)


async def _run(settings: OperatorSettings, place: Place) -> int:
    """Work until a signal comes; the exit code.

    Raises:
        SnaploomError: it cannot begin, or cannot go on.
    """
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ending.done():
            ending.set_result(code)

    def give_up(error: Exception) -> None:
        if not ending.done():
            ending.set_exception(error)

    loop.add_signal_handler(signal.SIGTERM, end, 0)
    loop.add_signal_handler(signal.SIGINT, end, INTERRUPTED)
    has_begun = asyncio.Event()
    working = asyncio.create_task(_work(settings, place, give_up, ending, has_begun))
    await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
    if not has_begun.is_set():
        working.cancel()  # it waits for the Lease, or for an answer: nothing is in hand
    try:
        return await working
    except asyncio.CancelledError:
        return ending.result()


async def _work(
    settings: OperatorSettings,
    place: Place,
    give_up: Callable[[Exception], None],
    ending: asyncio.Future[int],
    has_begun: asyncio.Event,
) -> int:
    async with running_operator(settings, place, give_up):
        has_begun.set()
        # What was listed stays: to look through ten thousand resources takes 0.3 s each time.
        gc.collect()
        gc.freeze()
        return await asyncio.shield(ending)
