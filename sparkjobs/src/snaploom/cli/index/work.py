"""How the commands about skipping indexes are carried out: with progress, and to be interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from snaploom import lazy
from snaploom.cli.console import message_console
from snaploom.cli.index.progress import IndexProgress
from snaploom.errors import Interrupted
from snaploom.jobs.indexes.requests import CarryOut, IndexReport, IndexRequest
from snaploom.jobs.interruption import hearing_signals


def carry_out(requests: Sequence[IndexRequest]) -> tuple[IndexReport, ...]:
    """Do what is asked for, in one session of Spark."""
    progress = IndexProgress(message_console())
    with hearing_signals() as interruption:
        work = cast(CarryOut, lazy.resolve(lazy.INDEX))
        try:
            return work(requests, progress.tell, progress.show, interruption)
        finally:
            progress.close()


@contextmanager
def put_back_when_interrupted(label: str) -> Iterator[None]:
    """Tell what Ctrl-C and SIGTERM mean for what needs no Spark: an operation puts itself back.

    Raises:
        Interrupted: somebody asked to stop.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"{label}: interrupted",
            found="an operation that was stopped and put back",
            hint="queries use what was there before; run the command again",
        ) from error
