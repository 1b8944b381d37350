"""`snaploom operator pages`: serves the pages of outputs in a cluster."""

from functools import partial

from snaploom_operator.cluster.client import PAGES
from snaploom_operator.commands.options import Kubeconfig, SettingsFile, connected
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.logs import set_up_logs
from snaploom_operator.process.pages import SHOWN_KINDS, Pages, running_pages
from snaploom_operator.process.process import Process
from snaploom_operator.settings import read_settings


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
    opened = partial(connected, kubeconfig, PAGES, partial(running_pages, settings=read))
    process = Process[Pages](opened)
    serve(process, Connection(kubeconfig, None, PAGES), read, SHOWN_KINDS)
    return 0
