"""`snaploom operator webhook`: runs the admission webhook."""

from functools import partial
from typing import Annotated

from cyclopts import Parameter

from snaploom_operator.cluster.client import WEBHOOK
from snaploom_operator.commands.options import Kubeconfig, SettingsFile, connected
from snaploom_operator.handlers.admission import ReviewServer, admission_registry
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.logs import set_up_logs
from snaploom_operator.process.process import Process
from snaploom_operator.process.webhook import DRAIN_SECONDS, Admission, running_webhook
from snaploom_operator.settings import read_settings
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
    running = partial(running_webhook, settings=read, drain=drain)
    process = Process[Admission](partial(connected, kubeconfig, WEBHOOK, running))
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
