"""The session of Spark in which commands about skipping indexes work, and how their work ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession

from snaploom.jobs.interruption import Interruption
from snaploom.jobs.job import JobGroup, run_in_group
from snaploom.jobs.session.spark import build_session
from snaploom.models.allowances import Allowances
from snaploom.models.run import RunSettings
from snaploom.skipping.statements.syntax import Properties

T = TypeVar("T")


def in_session(
    run: RunSettings,
    settings: Properties,
    allow: Allowances,
    work: Callable[[SparkSession, JobGroup], T],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> T:
    """Do something with Spark in a thread of its own.

    Args:
        run: how the session is made, from a resource.
        settings: what was asked for on top, which wins.
        allow: what the resource may ask for beyond the built-in lists.
        work: takes the session, and a group into which it puts its jobs, so that they end with an
            interruption.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.

    Raises:
        SparkNotStarted: there is no Spark to work with.
        Interrupted: somebody asked to stop.
        SparkStopped: Spark was shut down, or killed.
        Exception: whatever `work` raises otherwise.
    """
    group = JobGroup()

    def begun() -> T:
        interruption.check()
        return work(build_session("snaploom index", run, allow, settings), group)

    return run_in_group(begun, group, interruption, on_tick)
