"""`snaploom operator run`: runs the operator.

Exit codes: 0 stopped by SIGTERM or Ctrl-C; 1 a request to the cluster failed; 2 the settings or the
kubeconfig are invalid.
"""

import gc
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from snaploom.models.run import Submitter
from snaploom_operator.cluster.client import USER_AGENT
from snaploom_operator.commands.options import Kubeconfig, SettingsFile
from snaploom_operator.errors import SettingsInvalid
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.logs import set_up_logs
from snaploom_operator.process import operator
from snaploom_operator.process.process import Process
from snaploom_operator.settings import OperatorSettings, read_settings

NEW_OBJECTS = 10_000
"""Threshold of Python's garbage collection; with the default of 700, listing ten thousand resources
takes a tenth longer."""


def run(
    *,
    settings: SettingsFile = None,
    kubeconfig: Kubeconfig = None,
    context: Annotated[
        str | None, Parameter(help="Context of the kubeconfig; default: its current one.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        Parameter(
            name=["--namespace", "-n"],
            consume_multiple=True,
            help="Namespaces to watch, instead of those in the settings.",
        ),
    ] = None,
    local: Annotated[
        bool,
        Parameter(
            help="For development: run jobs of the submitter `Local` as processes; the cluster "
            "needs only the CustomResourceDefinitions."
        ),
    ] = False,
    local_workers: Annotated[
        int,
        Parameter(
            help="Concurrent jobs with --local.",
            validator=validators.Number(gte=1, lte=64),
            show_default=True,
        ),
    ] = 1,
) -> int:
    """Run the operator until SIGTERM or Ctrl-C."""
    read = _with_options(read_settings(settings), settings, namespace, local)
    _require_submitter(read, settings, is_local=local)
    set_up_logs(read.log_format, read.log_level)
    gc.set_threshold(NEW_OBJECTS)
    options = operator.RunOptions(kubeconfig, context, local, local_workers)
    serve(
        Process(partial(operator.running_operator, settings=read, options=options)),
        Connection(kubeconfig, context, USER_AGENT),
        read,
        operator.operator_kinds(read, is_local=local),
    )
    return 0


def _with_options(
    read: OperatorSettings, file: Path | None, namespaces: list[str] | None, is_local: bool
) -> OperatorSettings:
    """The settings with the options of the command line.

    Without a settings file logs are text, and with `--local` ports are free ones, since the default
    ports may be in use on a developer's machine.
    """
    changes: dict[str, object] = {}
    if namespaces:
        changes["watch_namespaces"] = tuple(dict.fromkeys(namespaces))
    if file is None:
        changes["log_format"] = "text"
    if file is None and is_local:
        changes |= {"health_port": 0, "readiness_port": 0, "metrics_port": 0}
    return read.model_copy(update=changes)


def _require_submitter(read: OperatorSettings, file: Path | None, *, is_local: bool) -> None:
    """Check that at least one submitter is usable."""
    if operator.allowed_submitters(read.submitters, is_local=is_local):
        return
    raise SettingsInvalid(
        f"{file}: no submitter may start jobs",
        path="submitters",
        found=", ".join(read.submitters) or "an empty list",
        expected=f"{Submitter.SPARK_OPERATOR}, {Submitter.APACHE_SPARK}, or both",
        hint="name one, or leave the field out; `--local` lets the operator run jobs itself",
    )
