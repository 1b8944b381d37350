"""Settings that the caller of a job decides: time, limits, event callback, interruption."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql import SparkSession

from snaploom.engine.retries import TaskProgress, task_progress
from snaploom.jobs.interruption import Interruption, run_interruptibly
from snaploom.jobs.runevents import EmitEvent
from snaploom.jobs.session.errortranslation import SPARK_FAILURES, SparkStopped, translated
from snaploom.jobs.session.memorylimit import MemoryLimit
from snaploom.jobs.weaving.runoptions import AS_DECLARED, RunOptions
from snaploom.models.times import EpochNanos
from snaploom.storage.leaseholder import TERMS, LeaseTerms, OpenLease
from snaploom.storage.writeridentity import CrashPoint

Result = TypeVar("Result")


class JobGroup:
    """The Spark jobs of what is being done now: watched for progress, cancelled on interruption."""

    def __init__(self, memory: MemoryLimit | None = None) -> None:
        """No group yet; `memory` is this process's container."""
        self._current: tuple[SparkSession, str] | None = None
        self._memory = memory or MemoryLimit()
        self._kills_before = self._memory.kills()

    def enter(self, spark: SparkSession, name: str, description: str) -> None:
        """Put the jobs that this thread starts from here on into a group of their own."""
        with translated():
            spark.sparkContext.setJobGroup(name, description, interruptOnCancel=True)
        self._current = spark, name

    @property
    def name(self) -> str:
        """The group entered last; empty before the first."""
        return self._current[1] if self._current else ""

    def cancel(self) -> None:
        """Cancel the jobs of the group; may be called from another thread."""
        if self._current is not None:
            spark, name = self._current
            with suppress(*SPARK_FAILURES):  # Spark that is gone runs nothing any more
                spark.sparkContext.cancelJobGroup(name)

    @property
    def _is_spark_gone(self) -> bool:
        """Whether the session at work was shut down, or its process has ended."""
        if self._current is None:
            return False
        try:
            return bool(self._current[0].sparkContext._jsc.sc().isStopped())
        except SPARK_FAILURES:
            return True

    def stopped(self) -> SparkStopped | None:
        """Why nothing can be run any more; None while Spark is there."""
        if not self._is_spark_gone:
            return None
        if self._memory.kills() > self._kills_before:
            limit = self._memory.mebibytes()
            return SparkStopped(
                "the kernel killed Spark's JVM: the memory of the driver's container was used up",
                found=None if limit is None else f"a limit of {limit} MiB",
                hint="raise run.spark.driver.memory, or the setting spark.driver.memoryOverhead; "
                "what was published stays, and nothing is half published",
            )
        return SparkStopped(
            "Spark was shut down while the run was at work",
            hint="run again; what was published stays, and nothing is half published",
        )

    def check(self) -> None:
        """Stop here if nothing can be run any more.

        Raises:
            SparkStopped: Spark is gone.
        """
        stopped = self.stopped()
        if stopped is not None:
            raise stopped

    def progress(self) -> TaskProgress:
        """How far the group is; may be called from another thread."""
        if self._current is not None:
            with suppress(*SPARK_FAILURES):
                return task_progress(*self._current)
        return TaskProgress(0, 0)


def run_in_group(
    work: Callable[[], Result],
    group: JobGroup,
    interruption: Interruption,
    on_tick: Callable[[], None] = lambda: None,
) -> Result:
    """Run `work` in a thread of its own, whose Spark jobs end with an interruption.

    Args:
        work: enters the group before it starts jobs.
        group: of its jobs.
        interruption: from `signal_handlers`.
        on_tick: called several times a second from this thread.

    Raises:
        Interrupted: somebody asked to stop: whatever goes wrong then goes wrong because of it.
        SparkStopped: Spark is gone, which makes everything fail.
        Exception: whatever `work` raises otherwise.
    """
    try:
        return run_interruptibly(work, interruption, group.cancel, on_tick)
    except Exception as error:
        cause = interruption.cause or group.stopped()
        if cause is None:
            raise
        raise cause from error


def _pass_by(_point: CrashPoint) -> None:
    return None


@dataclass(frozen=True)
class Job:
    """What the caller decides about a run."""

    now: EpochNanos
    """The instant of planning."""
    clock: Callable[[], EpochNanos]
    """The wall clock, for reports."""
    emit: EmitEvent
    """Takes the events."""
    interruption: Interruption = field(default_factory=Interruption)
    """Whether somebody asked to stop."""
    group: JobGroup = field(default_factory=JobGroup)
    """The Spark jobs of what is being done now."""
    limit: int | None = None
    """Snapshots to publish at most."""
    options: RunOptions = AS_DECLARED
    """What is asked of the run beyond its declarations."""
    lease: OpenLease | None = None
    """Where leases are kept; None for a run that need not know of others."""
    terms: LeaseTerms = TERMS
    """How long everything about a lease takes."""
    reached: Callable[[CrashPoint], None] = _pass_by
    """Called at every crash point; does nothing except in tests."""
