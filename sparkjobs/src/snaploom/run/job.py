"""Settings that the caller of a job decides: time, limits, event callback, interruption."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql import SparkSession

from snaploom.engine.rowcounts import TaskProgress, task_progress
from snaploom.errors import MemoryUsedUp, SnaploomError
from snaploom.models.common import EpochNanos
from snaploom.output.folder import CrashPoint
from snaploom.output.leaseholder import TERMS, LeaseTerms, OpenLease
from snaploom.run.runevents import EmitEvent, Interruption, run_interruptibly
from snaploom.run.session.jvm import MemoryLimit
from snaploom.run.session.spark import SPARK_FAILURES, SparkStopped, translated
from snaploom.run.weaving.requests import AS_DECLARED, RunOptions
from snaploom.spark.failures import MORE_MEMORY

Result = TypeVar("Result")
POOL = "spark.scheduler.pool"
"""Property of a thread: the pool in which its jobs are scheduled."""


_ENDS = {
    52: "ended because its heap was full",
    -signal.SIGKILL: "was killed, as a kernel does to what is largest when memory is used up",
}
"""Ends of a JVM for want of memory, by exit code: Spark's own for a full heap, and a signal."""
LAST_WORDS = 5.0
"""Seconds that the end of a JVM is waited for, which begins with that of its session."""


class JobGroup:
    """The Spark jobs of the work under way: watched for progress, cancelled on interruption.

    Each thread at work has a group of its own.
    """

    def __init__(self, memory: MemoryLimit | None = None) -> None:
        self._spark: SparkSession | None = None
        self._names: dict[int, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._heap = ""
        self._at_work = ""
        self._rows: dict[int, int] = {}
        self._memory = memory or MemoryLimit()
        self._kills_before = self._memory.kills()

    def enter(self, spark: SparkSession, name: str, description: str) -> None:
        """Put the jobs that this thread starts from here on into a group of their own."""
        with translated():
            spark.sparkContext.setJobGroup(name, description, interruptOnCancel=True)
            if self._spark is not spark:
                gateway = getattr(spark.sparkContext, "_gateway", None)
                self._process = getattr(gateway, "proc", None)
                if gateway is not None:
                    heap = gateway.jvm.java.lang.Runtime.getRuntime().maxMemory()
                    self._heap = f"; its heap has {heap >> 20:,} MiB"
        self._spark = spark
        self._names[threading.get_ident()] = name
        self.describe(description)

    def describe(self, at_work: str) -> None:
        """State what the next jobs are for, in case that they take more memory than there is."""
        self._at_work = at_work
        self._rows.clear()

    @contextmanager
    def of_thread(self) -> Iterator[None]:
        """A thread that ends with the block, and its group with it."""
        try:
            yield
        finally:
            self._names.pop(threading.get_ident(), None)

    @property
    def name(self) -> str:
        """The group that this thread entered last; empty before the first."""
        return self._names.get(threading.get_ident(), "")

    def cancel(self) -> None:
        """Cancel the jobs of every thread's group; may be called from another thread."""
        spark = self._spark
        if spark is None:
            return
        for name in tuple(self._names.values()):
            with suppress(*SPARK_FAILURES):  # Spark that is gone runs nothing any more
                spark.sparkContext.cancelJobGroup(name)

    @property
    def _is_spark_gone(self) -> bool:
        """Whether the session at work was shut down, or its process has ended."""
        if self._spark is None:
            return False
        try:
            return bool(self._spark.sparkContext._jsc.sc().isStopped())
        except SPARK_FAILURES:
            return True

    def stopped(self) -> SparkStopped | None:
        """Return why nothing can be run any more; None while Spark is running."""
        if not self._is_spark_gone:
            return None
        code = self._exit_code() or 0
        if self._memory.kills() > self._kills_before:
            limit = self._memory.mebibytes()
            return SparkStopped(
                "the kernel killed Spark's JVM: the memory of the driver's container was used up",
                found=None if limit is None else f"a limit of {limit} MiB",
                hint="raise run.spark.driver.memory, or the setting spark.driver.memoryOverhead; "
                "what was published stays, and nothing is half published",
            )
        if code in _ENDS:
            return SparkStopped(
                f"Spark's JVM {_ENDS[code]}",
                found=self._work,
                expected="memory for the heap, and in it for the rows of a task and whole arrays",
                hint=MORE_MEMORY,
            )
        return SparkStopped("Spark was shut down while the run was at work")

    def explained(self, error: SnaploomError) -> SnaploomError:
        """The error, with what was at work where memory was used up."""
        if isinstance(error, MemoryUsedUp):
            found, error.found = error.found, self._work
            error.found += f": {found}" * bool(found)
        return error

    def _exit_code(self) -> int | None:
        """Exit code of the JVM, minus a signal; None where it goes on, or is no child of ours."""
        if self._process is None:
            return None
        try:
            return self._process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            return None

    @property
    def _work(self) -> str:
        rows = sum(self._rows.values())
        return f"{self._at_work}{f', after reading {rows:,} rows' * bool(rows)}{self._heap}"

    def check(self) -> None:
        """Stop here if nothing can be run any more."""
        stopped = self.stopped()
        if stopped is not None:
            raise stopped

    def progress(self) -> TaskProgress:
        """Return the progress of the groups; may be called from another thread."""
        spark, done, total = self._spark, 0, 0
        if spark is not None:
            for name in tuple(self._names.values()):
                with suppress(*SPARK_FAILURES):
                    group = task_progress(spark, name)
                    done, total = done + group.done, total + group.total
                    self._rows.update(group.rows)
        return TaskProgress(done, total)


def run_in_group(
    work: Callable[[], Result],
    group: JobGroup,
    interruption: Interruption,
    on_tick: Callable[[], None] = lambda: None,
) -> Result:
    """Run `work` in a thread of its own, whose Spark jobs end with an interruption.

    `work` enters the group before it starts jobs; `on_tick` is called several times a second.
    """
    try:
        return run_interruptibly(work, interruption, group.cancel, on_tick)
    except Exception as error:
        cause = interruption.cause or group.stopped()
        if cause is None:
            raise
        raise cause from error


@dataclass(frozen=True)
class Job:
    """The caller's decisions about a run."""

    now: EpochNanos
    clock: Callable[[], EpochNanos]
    emit: EmitEvent
    interruption: Interruption = field(default_factory=Interruption)
    group: JobGroup = field(default_factory=JobGroup)
    options: RunOptions = AS_DECLARED
    lease: OpenLease | None = None
    """Store of leases; None for a run that need not know of others."""
    terms: LeaseTerms = TERMS
    reached: Callable[[CrashPoint], None] = lambda point: None
    """Called at every crash point; does nothing except in tests."""
