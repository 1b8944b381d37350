"""Did everything in a job group run exactly once?

A task that ran twice may have added to an observation twice; counts of such a run are confirmed by
counting again (rule W25). Spark's status store knows, with or without its web pages. It is asked
through py4j; when it does not know (an old job was evicted) the answer is the careful one.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

TASK_PATIENCE = 10.0
"""Seconds to wait for cancelled tasks to end: Spark's own interrupt at the next row or batch,
an expression that takes longer is left behind, and its file to `snaploom gc`."""
POLL_SECONDS = 0.05
"""Time between two looks at running tasks: they end within milliseconds of the request."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far the running jobs of a group are."""

    done: int
    total: int


def await_listeners(spark: SparkSession, seconds: float) -> bool:
    """Wait until Spark's listeners have seen all events so far; whether they have, in time.

    Listeners fill both the status store and observations, some time after an action returns.
    """
    try:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(seconds * 1000))
    except Py4JError:
        return False
    return True


def ran_exactly_once(spark: SparkSession, job_group: str) -> bool:
    """Whether no task or stage of a job group failed, was killed, or ran a second time."""
    context = spark.sparkContext._jsc.sc()
    store = context.statusStore()
    try:
        for job_id in context.statusTracker().getJobIdsForGroup(job_group):
            job = store.job(job_id)
            if job.numFailedTasks() or job.numKilledTasks() or job.numFailedStages():
                return False
            stages = job.stageIds()
            for index in range(stages.size()):
                if store.lastStageAttempt(stages.apply(index)).attemptId() > 0:
                    return False
    except Py4JError:
        return False
    return True


def await_tasks(spark: SparkSession, seconds: float) -> bool:
    """Wait until no task runs on any executor; whether that came about in time.

    A job that failed or was cancelled is over before its tasks are.
    """
    deadline = monotonic() + seconds
    try:
        store = spark.sparkContext._jsc.sc().statusStore()
        while monotonic() < deadline:
            executors = store.executorList(True)
            if not any(executors.apply(i).activeTasks() for i in range(executors.size())):
                return True
            sleep(POLL_SECONDS)
    except (Py4JError, OSError):
        return False
    return False


def task_progress(spark: SparkSession, job_group: str) -> TaskProgress:
    """Tasks done and in all, over the stages of a group's jobs that Spark knows of by now."""
    tracker = spark.sparkContext.statusTracker()
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(job_group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return TaskProgress(done, total)
