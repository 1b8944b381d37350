"""Facts about the runs of a resource, by which its step is decided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from cronsim import CronSimError

from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, format_instant
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import Report, RunPhase
from snaploom.models.run import (
    CurrentPhase,
    CurrentRun,
    LastPhase,
    LastRun,
    Retry,
    RunAction,
    RunSettings,
    Schedule,
    Submitter,
    Trigger,
)
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.plan.times import CronTicks
from snaploom_operator import objects
from snaploom_operator.conditions import Reason, joined
from snaploom_operator.decision import Action, Note, ObservedRuns, Refusal
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.quota import waits_for_quota

SETTLE_SECONDS = 60.0
"""Longest delay of a report after the end of its run, and of an application after the write that
created it: watches are at worst seconds late."""
STOP_LIMIT_SECONDS = 120.0
"""Longest wait of the deletion for the current run to end: a pod has thirty seconds by default, and
watches and the submitter need some more."""


@dataclass(frozen=True)
class Fault:
    """A cause that makes a resource unusable."""

    reason: Reason
    message: str
    is_about_tree: bool = False
    """True if all is valid, but there is not exactly one join tree."""


@dataclass(frozen=True)
class DecideSettings:
    """Settings that are the same for all resources."""

    operator: OperatorSettings
    submitter: Submitter

    @classmethod
    def of(cls, settings: OperatorSettings, *, is_local: bool = False) -> DecideSettings:
        """Derive them from the settings; with `--local` the operator itself is the submitter."""
        first = next(iter(settings.submitters), Submitter.SPARK_OPERATOR)
        return cls(settings, Submitter.LOCAL if is_local else first)


@dataclass(frozen=True)
class Ticks:
    """The ticks of a schedule around an instant."""

    latest: EpochNanos | None = None
    next: EpochNanos | None = None


NO_TICKS = Ticks()


def ticks(schedule: Schedule | None, now: EpochNanos) -> Ticks:
    """The ticks around an instant; none without a schedule, or with one that validation refuses."""
    if schedule is None:
        return NO_TICKS
    known = CronTicks(schedule.cron, schedule.time_zone)
    try:
        return Ticks(known.latest(now), known.following(now))
    except (CronSimError, KeyError, ValueError, OSError, OverflowError):
        return NO_TICKS


UNSUBMITTED = (CurrentPhase.QUEUED, CurrentPhase.SUBMITTING)
"""Phases of a run of which no application was observed."""
_LONGEST_TOKEN = 64
"""Characters of the annotation that a status records; longer ones are hashed."""


@dataclass(frozen=True)
class RunView:
    """One runnable resource."""

    now: EpochNanos
    owner: OutputDataset | SkippingIndex
    runs: ObservedRuns
    bundle: Bundle | None
    declarations: str
    upstream: str
    """Hash of the publications that start its runs."""
    unpublished: tuple[str, ...]
    """Upstream outputs that have not published yet; the first run waits for them."""
    refusal: Refusal | None
    defaults: DecideSettings
    fault: Fault | None
    """The cause that keeps runs from starting."""

    @property
    def settings(self) -> RunSettings:
        return self.owner.spec.run

    @property
    def submitter(self) -> Submitter:
        return self.settings.submitter or self.defaults.submitter

    @property
    def namespace(self) -> str:
        return self.owner.metadata.namespace or ""

    @property
    def uid(self) -> str:
        return self.owner.metadata.uid or ""

    @property
    def current(self) -> CurrentRun | None:
        """The recorded run in flight."""
        return self.owner.status.current_run if self.owner.status is not None else None

    @property
    def last(self) -> LastRun | None:
        return self.owner.status.last_run if self.owner.status is not None else None

    @property
    def realised(self) -> str:
        """Hash of the declarations of the last successful run; empty without one."""
        status = self.owner.status
        return (status.realised or "") if status is not None else ""

    @property
    def is_realised(self) -> bool:
        """True if a run of the current declarations succeeded."""
        return bool(self.declarations) and self.realised == self.declarations

    @property
    def is_paused(self) -> bool:
        return objects.is_pause(self.owner.metadata.annotations)

    @property
    def is_deleting(self) -> bool:
        return self.owner.metadata.deletion_timestamp is not None

    @property
    def has_finalizer(self) -> bool:
        return objects.FINALIZER in self.owner.metadata.finalizers

    @property
    def token(self) -> str:
        """Value of the annotation that requests a run, or its hash; empty without one."""
        text = self.owner.metadata.annotations.get(objects.ANNOTATION_RUN, "")
        if len(text) <= _LONGEST_TOKEN:
            return text
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def ticks(self) -> Ticks:
        """The ticks around now; none where they start no runs."""
        index = self.owner if isinstance(self.owner, SkippingIndex) else None
        if index is not None and index.spec.refresh.trigger is not RefreshTrigger.SCHEDULE:
            return NO_TICKS
        return ticks(self.settings.schedule, self.now)

    @property
    def trigger(self) -> Trigger:
        """The trigger of a run that is decided now."""
        latest = self.ticks.latest
        return Trigger(
            declarations=self.declarations,
            upstream=self.upstream,
            token=self.token,
            scheduled=format_instant(latest) if latest is not None else None,
        )

    @cached_property
    def followed(self) -> CurrentRun | None:
        """The run in flight: the recorded one, or an unrecorded one that is in the cluster.

        A status can be lost, or restored from a backup. A running application is adopted then, and
        the last ended one is evaluated again, so that its work is not repeated.
        """
        current, last = self.current, self.last
        if current is not None and current.phase not in UNSUBMITTED:
            return current
        known = {run for run in (current and current.name, last and last.id) if run is not None}
        since = objects.known_instant(last.started_at) if last is not None else None
        unrecorded = [
            application
            for application in self.runs.applications
            if application.name not in known
            and (since is None or application.started_at > since)
            and (current is None or not application.state.is_terminal)
        ]
        if not unrecorded or (current is not None and self._application(current.name) is not None):
            return current
        # Running before ended, then the latest.
        newest = max(unrecorded, key=lambda a: (not a.state.is_terminal, a.started_at, a.name))
        return CurrentRun(
            name=newest.name,
            id=newest.name,
            action=newest.action,
            phase=CurrentPhase.SUBMITTED,
            since=format_instant(self.now),
            started_at=format_instant(newest.started_at),
            attempt=newest.attempt,
            trigger=newest.trigger,
            uid=newest.uid,
        )

    def _application(self, run: str) -> objects.Application | None:
        return next((each for each in self.runs.applications if each.name == run), None)

    @cached_property
    def application(self) -> objects.Application | None:
        return None if self.followed is None else self._application(self.followed.name)

    @property
    def pod(self) -> objects.DriverPod | None:
        """The driver's pod of the followed run."""
        return None if self.followed is None else self.runs.driver_pods.get(self.followed.name)

    @property
    def observation(self) -> RunObservation | None:
        """The state of the followed run; None without an application."""
        found = self.application
        return None if found is None else _observe_run(found, self.pod, self._awaited_quota(found))

    @property
    def report(self) -> Report | None:
        """The report of the followed run, whether or not it has ended; no other is read."""
        run = self.followed
        found = self.runs.reports.get(run.name) if run is not None else None
        report = found.report if found is not None else None
        if run is None or report is None:
            return None
        return report if (report.uid, report.run_id) == (self.uid, run.name) else None

    @property
    def final_report(self) -> Report | None:
        """The report of the followed run, if it has ended."""
        report = self.report
        return report if report is not None and report.phase is not RunPhase.RUNNING else None

    @property
    def report_trouble(self) -> str:
        """The cause if the followed run's report is ignored; empty if it is valid or missing."""
        found = self.runs.reports.get(self.followed.name) if self.followed is not None else None
        if found is None:
            return ""
        if found.report is None:
            return f"its report cannot be read: {found.trouble}"
        return "its report belongs to another run" if self.report is None else ""

    @property
    def since(self) -> EpochNanos | None:
        """Beginning of the followed run's phase; None if it is unknown."""
        return objects.known_instant(self.followed.since) if self.followed is not None else None

    @property
    def lasted(self) -> float:
        """Seconds that the followed run's phase has certainly lasted.

        In doubt it is 0: nothing is stopped because a clock was set back.
        """
        since = self.since
        return 0.0 if since is None else (self.now - since) / NANOS_PER_SECOND

    @property
    def finished_at(self) -> EpochNanos:
        """End of the followed run by its report; now where that is unknown."""
        report = self.report
        return (
            objects.known_instant(report.finished_at) if report is not None else None
        ) or self.now

    @property
    def is_settled(self) -> bool:
        """True if the followed run's phase lasts longer than watches are late."""
        run = self.followed
        return run is not None and objects.is_past(run.since, SETTLE_SECONDS, self.now)

    @property
    def answered(self) -> Trigger:
        """The trigger of the followed run.

        That of its application counts; without its annotation it still is this run.
        """
        run, application = self.followed, self.application
        if run is None:
            return Trigger()
        if run.phase is not CurrentPhase.SUBMITTING or application is None:
            return run.trigger
        return application.trigger if application.trigger.declarations else run.trigger

    @property
    def is_overtaken(self) -> bool:
        """True if the followed run does not answer all that asks now."""
        run = self.followed
        return run is not None and bool(_changed(self, self.answered, run.started_at))

    @property
    def may_still_publish(self) -> bool:
        """True if a run of a deleted resource may still publish.

        Its application is deleted first, and its driver's pod has its grace period. After
        `STOP_LIMIT_SECONDS` the deletion continues without it.
        """
        current, last = self.followed, self.last
        if current is not None:
            is_seen = current.phase not in UNSUBMITTED or self.application is not None
            if current.action is not RunAction.RUN or not is_seen:
                return False
            is_ending = current.phase is CurrentPhase.ENDING
            return not (is_ending and objects.is_past(current.since, STOP_LIMIT_SECONDS, self.now))
        if last is None or last.action is not RunAction.RUN or last.finished_at is None:
            return False
        is_over = objects.is_past(last.finished_at, STOP_LIMIT_SECONDS, self.now)
        return not is_over and is_alive(self.runs.driver_pods.get(last.id))

    @property
    def may_run_on_schedule(self) -> bool:
        """True if the schedule may start a run although nothing changed since the last one."""
        last = self.last
        if last is None or last.phase is LastPhase.SUCCEEDED or last.retryable:
            return True
        return last.reason not in DECLARED

    @cached_property
    def due(self) -> Due | None:
        """The run that is due now, whether or not one is in flight; None when none is."""
        last = self.last
        if last is None or last.action is not RunAction.RUN:
            may = not self.unpublished or self.token
            return Due(self.trigger, 0, "it has never run") if may else None
        changes = _changed(self, last.trigger, last.started_at)
        if not self.may_run_on_schedule:
            changes = [why for why in changes if why in (DECLARATIONS_CHANGED, ASKED_FOR)]
        if changes:
            return Due(self.trigger, 0, " and ".join(changes))
        at = self.retry_at
        if at is not None and at <= self.now:
            return Due(self.trigger, last.attempt + 1, "the last attempt failed")
        if last.phase is LastPhase.STOPPED and last.reason == Reason.RUN_STOPPED:
            # The run that replaced it is not due any more, and its own trigger was not handled.
            return Due(self.trigger, 0, "the last run was stopped, and none took its place")
        return None

    @cached_property
    def due_deletion(self) -> Due | None:
        """The run that deletes the data of a deleted resource; None when none is due."""
        why, last = "the resource is being deleted", self.last
        if last is None or last.action is RunAction.RUN:
            return Due(self.trigger, 0, why)
        if last.phase is LastPhase.SUCCEEDED:
            return None
        changes = _changed(self, last.trigger, last.started_at)
        if {DECLARATIONS_CHANGED, ASKED_FOR} & set(changes):
            return Due(self.trigger, 0, why)
        at = self.retry_at
        is_due = at is not None and at <= self.now
        return Due(self.trigger, last.attempt + 1, why) if is_due else None

    @property
    def is_stuck(self) -> bool:
        """True if deleting the data of a deleted resource failed finally."""
        last = self.last
        if last is None or self.current is not None or not self.has_finalizer:
            return False
        has_failed = last.action is RunAction.DELETE and last.phase is not LastPhase.SUCCEEDED
        return has_failed and self.due_deletion is None and self.retry_at is None

    @cached_property
    def retry_at(self) -> EpochNanos | None:
        """The time of the retry after the last run failed; None if it has none."""
        last, retry = self.last, self.settings.retry
        if last is None or not has_attempts(last, retry):
            return None
        ended = objects.known_instant(last.finished_at)
        if ended is None or ended > self.now:
            return self.now
        # A hundred doublings are more than any wait: the exponent is bounded before the product.
        wait = min(retry.backoff_seconds * 2 ** min(last.attempt, 32), retry.max_backoff_seconds)
        return objects.later(ended, wait)

    def _awaited_quota(self, application: objects.Application) -> str:
        """The quota that a run waits for in its queue; empty without one, and once it has it."""
        scheduler = self.defaults.operator.queue_scheduler
        pod = self.runs.driver_pods.get(application.name)
        queue = application.queue
        if scheduler is None or not queue or not waits_for_quota(scheduler, application, pod):
            return ""
        answer = self.runs.quota.get(application.name) or (pod.trouble if pod is not None else "")
        return joined(f"quota in the queue {queue}", answer)

    @property
    def taken(self) -> frozenset[str]:
        """Names of runs with objects in the cluster."""
        return frozenset(
            (
                *(application.name for application in self.runs.applications),
                *(config_map.run for config_map in self.runs.config_maps),
                *self.runs.reports,
            )
        )

    @property
    def job_bundle(self) -> Bundle | None:
        """The Bundle of a deleting run: the declarations, or those that are left.

        The sources may have been deleted together with the output; its own spec has the folder.
        """
        if self.bundle is not None:
            return self.bundle
        owner = self.owner.model_copy(update={"status": None})
        if isinstance(owner, OutputDataset):
            return Bundle(output_dataset=owner)
        target = owner.spec.target
        if target.data_source is None and target.output_dataset is None:
            return Bundle(skipping_index=owner)
        return None


DECLARED = frozenset({"Invalid", "NoUniqueJoinTree", "NotSupported", "IndexNotPossible"})
"""Reasons of failures that only a change of the declarations can fix."""


@dataclass(frozen=True)
class Due:
    """A run that is due."""

    trigger: Trigger
    attempt: int
    why: str
    """Text for messages."""


Wake = tuple[EpochNanos | None, float]
"""A time to reconcile again: seconds after an instant; never where that is unknown."""


@dataclass(frozen=True)
class Step:
    """The result of one step of a run."""

    current: CurrentRun | None
    """The run in flight afterwards."""
    ended: LastRun | None = None
    report: Report | None = None
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    wakes: tuple[Wake, ...] = ()
    fault: Fault | None = None
    """The cause if starting the run failed."""


DECLARATIONS_CHANGED = "its declarations changed"
UPSTREAM_PUBLISHED = "an output that it reads has published"
ASKED_FOR = "a run was asked for"
TICKED = "the schedule is due"


def _changed(view: RunView, answered: Trigger, started_at: str) -> list[str]:
    """Triggers that the last run has not handled, by its trigger and the time of its decision."""
    asks = {
        DECLARATIONS_CHANGED: view.declarations not in ("", answered.declarations),
        UPSTREAM_PUBLISHED: view.upstream not in ("", answered.upstream),
        ASKED_FOR: view.token not in ("", answered.token),
        TICKED: _has_ticked(view, answered, started_at),
    }
    return [why for why, holds in asks.items() if holds]


def _has_ticked(view: RunView, answered: Trigger, started_at: str) -> bool:
    tick, schedule = view.ticks.latest, view.settings.schedule
    if tick is None or schedule is None:
        return False
    deadline = schedule.starting_deadline_seconds
    if deadline is not None and view.now > objects.later(tick, deadline):
        return False
    before = (objects.known_instant(answered.scheduled), objects.known_instant(started_at))
    # A time in the future was written before a clock was set back: ignore it.
    return all(tick > instant for instant in before if instant is not None and instant <= view.now)


_ALREADY_THERE = ("already exists", "alreadyexists")
_ALIVE = ("Pending", "Running")
_ENDING = (objects.ApplicationState.SUCCEEDING, objects.ApplicationState.FAILING)
_UNCLEAR = (
    objects.ApplicationState.UNKNOWN,
    objects.ApplicationState.SUSPENDING,
    objects.ApplicationState.SUSPENDED,
    objects.ApplicationState.RESUMING,
)
"""States without information about the job's progress."""
_RESUMED = (objects.ApplicationState.SUSPENDED, objects.ApplicationState.RESUMING)
"""States of an application that its queue has just admitted."""
_UNSEEN = "a Spark operator that watches this namespace to pick up its application"
_UNSEEN_HERE = "a free worker for local jobs"


@dataclass(frozen=True)
class RunObservation:
    """The observed state of a run."""

    phase: CurrentPhase | None
    """Its phase; None if it is unknown."""
    waiting_for: str
    """The object of its wait; empty while it is running."""
    has_ended: bool = False
    has_succeeded: bool = False


def _observe_run(
    application: objects.Application, pod: objects.DriverPod | None, quota: str = ""
) -> RunObservation:
    """The state of a run by its application, its driver pod, and the quota that it waits for."""
    state, message = application.state, application.message
    trouble = pod.trouble if pod is not None else ""
    if application.is_deleting and not state.is_terminal:
        return RunObservation(CurrentPhase.ENDING, "its application to be deleted")
    is_there = any(text in message.lower() for text in _ALREADY_THERE)
    if state is objects.ApplicationState.FAILED and is_there:
        return _behind_failure(message, pod)
    if state.is_terminal:
        return RunObservation(None, "", True, state is objects.ApplicationState.COMPLETED)
    if state in _ENDING:
        return RunObservation(CurrentPhase.ENDING, "its application to end")
    if quota:
        return RunObservation(CurrentPhase.QUOTA_PENDING, quota)
    if application.queue and state in _RESUMED:
        return RunObservation(CurrentPhase.SUBMITTED, f"its application, which is {state}")
    if state in _UNCLEAR:
        return RunObservation(None, joined(f"its application, which is {state}", message, trouble))
    if state is objects.ApplicationState.RUNNING:
        return RunObservation(CurrentPhase.RUNNING, "")
    unseen = _UNSEEN_HERE if application.submitter is Submitter.LOCAL else _UNSEEN
    begun = f"its application, which is {state}" if state else unseen
    return RunObservation(CurrentPhase.SUBMITTED, joined(begun, message, trouble))


def _behind_failure(message: str, pod: objects.DriverPod | None) -> RunObservation:
    """The state of a submission that failed because of an earlier one."""
    if pod is None:
        return RunObservation(None, "", True, False)
    if is_alive(pod):
        phase = CurrentPhase.RUNNING if pod.phase == "Running" else CurrentPhase.SUBMITTED
        why = f"the driver of an earlier submission, pod {pod.name}, is {pod.phase}"
        return RunObservation(phase, joined(why, pod.trouble))
    return RunObservation(None, "", True, pod.phase == "Succeeded")


def is_alive(pod: objects.DriverPod | None) -> bool:
    """Return whether a driver may still be running."""
    return pod is not None and pod.phase in _ALIVE


def has_attempts(last: LastRun, retry: Retry) -> bool:
    """Return whether a run failed and has retries left."""
    failed = last.phase is not LastPhase.SUCCEEDED and last.retryable
    return failed and last.attempt < retry.limit
