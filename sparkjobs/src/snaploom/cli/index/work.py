"""How the commands about skipping indexes are carried out: with progress, and to be interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from snaploom import lazy
from snaploom.cli.console import message_console
from snaploom.cli.index.progress import IndexProgress
from snaploom.jobs.indexrequests import CarryOut, IndexReport, IndexRequest
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
