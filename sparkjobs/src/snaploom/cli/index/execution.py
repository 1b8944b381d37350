"""Runs index commands with progress and interruption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from snaploom import ondemand
from snaploom.cli.console import message_console
from snaploom.cli.index.buildprogress import IndexProgress
from snaploom.errors import Interrupted
from snaploom.jobs.indexes.indexrequests import IndexReport, IndexRequest
from snaploom.jobs.interruption import signal_handlers


def carry_out(requests: Sequence[IndexRequest]) -> tuple[IndexReport, ...]:
    """Carry out requests in one Spark session."""
    with signal_handlers() as interruption, closing(IndexProgress(message_console())) as progress:
        return ondemand.carry_out(requests, progress.update, progress.show, interruption)


@contextmanager
def put_back_when_interrupted(label: str) -> Iterator[None]:
    """Report Ctrl-C or SIGTERM as `Interrupted`, for operations that undo themselves.

    Raises:
        Interrupted: on Ctrl-C or SIGTERM.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"{label}: interrupted",
            found="an operation that was stopped and put back",
            hint="queries use what was there before; run the command again",
        ) from error
