"""Inputs of a run's decision: faults, schedule, observed state, and whether a run is due."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cronsim import CronSimError

from snaploom.models.common import Condition, ConditionStatus, EpochNanos, format_instant
from snaploom.models.findings import Finding, errors_of
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
from snaploom_operator.conditions import (
    ConditionType,
    ConditionValue,
    Reason,
    joined,
)
from snaploom_operator.decision import EventType, Note, ObservedResource, ObservedRuns, Refusal
from snaploom_operator.objects import (
    ANNOTATION_RUN,
    FINALIZER,
    Application,
    ApplicationState,
    DriverPod,
    is_past,
    is_pause,
    known_instant,
    later,
)
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.quota import waits_for_quota

_REASONS = {
    "SL130": Reason.REFERENCE_MISSING,
    "SL301": Reason.TREE_AMBIGUOUS,
    "SL302": Reason.SOURCE_UNREACHABLE,
}
"""Reasons by the code of an error; any other error is `Invalid`."""
LISTED = 5
"""Findings in a message; the others are counted."""
GRACE_SECONDS = 10.0
"""Seconds for which a reference may be missing before the resource stalls: a folder of declarations
is applied one by one, in the order of file names, and takes seconds."""
_ARRIVING = frozenset({Reason.REFERENCE_MISSING, Reason.REFERENCE_NOT_READY})
"""Reasons that a resource which is being applied may fix."""


@dataclass(frozen=True)
class Fault:
    """A cause that makes a resource unusable."""

    reason: Reason
    message: str
    is_about_tree: bool = False
    """True if all is valid, but there is not exactly one join tree."""


def fault_of(observed: ObservedResource) -> Fault | None:
    """The most severe fault of a resource; None without one."""
    if observed.outdated:
        return Fault(Reason.CRD_OUTDATED, observed.outdated)
    groups: defaultdict[Reason, list[Finding]] = defaultdict(list)
    for finding in errors_of(observed.findings):
        groups[_REASONS.get(finding.code, Reason.INVALID)].append(finding)
    for reason in (Reason.INVALID, Reason.REFERENCE_MISSING):
        if groups[reason]:
            return Fault(reason, findings_text(groups[reason]))
    if observed.faulty:
        return Fault(Reason.REFERENCE_NOT_READY, _faulty_text(observed.faulty))
    for reason in (Reason.TREE_AMBIGUOUS, Reason.SOURCE_UNREACHABLE):
        if groups[reason]:
            return Fault(reason, findings_text(groups[reason]), is_about_tree=True)
    return None


def stalls_at(
    fault: Fault | None, before: Iterable[Condition], now: EpochNanos
) -> EpochNanos | None:
    """The end of the grace period of a fault; None if it is over, or the fault has none.

    Until then the resource is Reconciling, with the same reason, and no event is posted.
    """
    if fault is None or fault.reason not in _ARRIVING:
        return None
    since = {condition.type: condition.last_transition_time for condition in before}
    if ConditionType.STALLED in since:
        return None
    start = since.get(ConditionType.RECONCILING, format_instant(now))
    if is_past(start, GRACE_SECONDS, now):
        return None
    return later(known_instant(start) or now, GRACE_SECONDS)


def validated(observed: ObservedResource, fault: Fault | None) -> ConditionValue:
    """The condition Validated."""
    if fault is not None and not fault.is_about_tree:
        return ConditionValue(ConditionType.VALIDATED, False, fault.reason, fault.message)
    warnings = [finding for finding in observed.findings if not finding.is_error]
    count = f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"
    text = f"{count}: {findings_text(warnings)}" if warnings else ""
    return ConditionValue(ConditionType.VALIDATED, True, Reason.VALID, text)


def findings_text(findings: Iterable[Finding]) -> str:
    """Findings as text, one per line: field path, message and fix."""
    listed = tuple(findings)
    lines = [_line(finding) for finding in listed[:LISTED]]
    if len(listed) > LISTED:
        lines.append(f"and {len(listed) - LISTED} more")
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    place = f"{finding.path}: " if finding.path else ""
    found = f" (found {finding.found})" if finding.found else ""
    hint = f"; {finding.hint}" if finding.hint else ""
    return f"{place}{finding.message}{found}{hint}"


def _faulty_text(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:LISTED])
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{shown}{more} cannot be used; see their conditions"


FINAL = (Reason.RETRIES_EXHAUSTED, Reason.RUN_REFUSED)
"""Reasons of failed runs that are not retried."""


def condition_notes(
    before: Iterable[Condition], after: Iterable[Condition], ended: LastRun | None = None
) -> tuple[Note, ...]:
    """Warnings about a resource that stalls or becomes stale, or whose run failed finally."""
    old, new = ({each.type: each for each in conditions} for conditions in (before, after))
    notes = []
    stalled, was_stalled = new.get(ConditionType.STALLED), old.get(ConditionType.STALLED)
    if stalled and not (was_stalled and was_stalled.reason == stalled.reason):
        notes.append(Note(EventType.WARNING, stalled.reason, stalled.message or stalled.reason))
    ready, was_ready = new[ConditionType.READY], old.get(ConditionType.READY)
    became_stale = ready.reason == Reason.STALE and not (
        was_ready and was_ready.reason == Reason.STALE
    )
    has_failed = ended and ready.reason in FINAL and ready.status is ConditionStatus.TRUE
    if (became_stale and not stalled) or has_failed:
        notes.append(Note(EventType.WARNING, ready.reason, ready.message))
    return tuple(notes)


@dataclass(frozen=True)
class DecideSettings:
    """Settings that are the same for all resources."""

    operator: OperatorSettings
    submitter: Submitter
    """Default submitter."""

    @classmethod
    def of(cls, settings: OperatorSettings, *, is_local: bool = False) -> DecideSettings:
        """Derive them from the settings; with `--local` the operator itself is the submitter."""
        first = next(iter(settings.submitters), Submitter.SPARK_OPERATOR)
        return cls(settings, Submitter.LOCAL if is_local else first)


@dataclass(frozen=True)
class Ticks:
    """The ticks of a schedule around an instant."""

    latest: EpochNanos | None = None
    """The latest past tick."""
    next: EpochNanos | None = None
    """The next tick."""


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
    """The operator's settings."""
    fault: Fault | None
    """The cause that keeps runs from starting."""

    @property
    def settings(self) -> RunSettings:
        """Settings of its runs."""
        return self.owner.spec.run

    @property
    def submitter(self) -> Submitter:
        """The submitter of its jobs."""
        return self.settings.submitter or self.defaults.submitter

    @property
    def namespace(self) -> str:
        """Namespace of the resource."""
        return self.owner.metadata.namespace or ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions as observed."""
        return self.owner.status.conditions if self.owner.status is not None else ()

    @property
    def uid(self) -> str:
        """UID of the resource."""
        return self.owner.metadata.uid or ""

    @property
    def current(self) -> CurrentRun | None:
        """The recorded run in flight."""
        return self.owner.status.current_run if self.owner.status is not None else None

    @property
    def last(self) -> LastRun | None:
        """The recorded last run."""
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
        """True if the pause annotation is set."""
        return is_pause(self.owner.metadata.annotations)

    @property
    def is_deleting(self) -> bool:
        """True if the resource is being deleted."""
        return self.owner.metadata.deletion_timestamp is not None

    @property
    def has_finalizer(self) -> bool:
        """True if the resource has our finalizer."""
        return FINALIZER in self.owner.metadata.finalizers

    @property
    def token(self) -> str:
        """Value of the annotation that requests a run, or its hash; empty without one."""
        text = self.owner.metadata.annotations.get(ANNOTATION_RUN, "")
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

    def application(self, run: str) -> Application | None:
        """The application of a run; None when there is none."""
        return next((each for each in self.runs.applications if each.name == run), None)

    def awaited_quota(self, application: Application) -> str:
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


def due(view: RunView) -> Due | None:
    """The run that is due now, whether or not one is in flight; None when none is."""
    last = view.last
    if last is None or last.action is not RunAction.RUN:
        may = not view.unpublished or view.token
        return Due(view.trigger, 0, "it has never run") if may else None
    changes = changed(view, last.trigger, last.started_at)
    if not may_run_on_schedule(last):
        changes = [why for why in changes if why in (DECLARATIONS_CHANGED, ASKED_FOR)]
    if changes:
        return Due(view.trigger, 0, " and ".join(changes))
    at = retry_at(view, last)
    if at is not None and at <= view.now:
        return Due(view.trigger, last.attempt + 1, "the last attempt failed")
    if last.phase is LastPhase.STOPPED and last.reason == Reason.RUN_STOPPED:
        # The run that replaced it is not due any more, and its own trigger was not handled.
        return Due(view.trigger, 0, "the last run was stopped, and none took its place")
    return None


DECLARATIONS_CHANGED = "its declarations changed"
UPSTREAM_PUBLISHED = "an output that it reads has published"
ASKED_FOR = "a run was asked for"
TICKED = "the schedule is due"


def changed(view: RunView, answered: Trigger, started_at: str) -> list[str]:
    """Triggers that the last run has not handled, by its trigger and the time of its decision."""
    asks = {
        DECLARATIONS_CHANGED: view.declarations not in ("", answered.declarations),
        UPSTREAM_PUBLISHED: view.upstream not in ("", answered.upstream),
        ASKED_FOR: view.token not in ("", answered.token),
        TICKED: _has_ticked(view, answered, started_at),
    }
    return [why for why, holds in asks.items() if holds]


def may_run_on_schedule(last: LastRun) -> bool:
    """Return whether the schedule may start a run although nothing changed since the last one."""
    has_failed = last.phase is not LastPhase.SUCCEEDED and not last.retryable
    return not (has_failed and last.reason in DECLARED)


def retry_at(view: RunView, last: LastRun) -> EpochNanos | None:
    """The time of a failed run's retry; None if it has none."""
    if not has_attempts(last, view.settings.retry):
        return None
    retry = view.settings.retry
    ended = known_instant(last.finished_at)
    if ended is None or ended > view.now:
        return view.now
    # A hundred doublings are more than any wait: the exponent is bounded before the product.
    wait = min(retry.backoff_seconds * 2 ** min(last.attempt, 32), retry.max_backoff_seconds)
    return later(ended, wait)


def _has_ticked(view: RunView, answered: Trigger, started_at: str) -> bool:
    tick, schedule = view.ticks.latest, view.settings.schedule
    if tick is None or schedule is None:
        return False
    deadline = schedule.starting_deadline_seconds
    if deadline is not None and view.now > later(tick, deadline):
        return False
    before = (known_instant(answered.scheduled), known_instant(started_at))
    # A time in the future was written before a clock was set back: ignore it.
    return all(tick > instant for instant in before if instant is not None and instant <= view.now)


_ALREADY_THERE = ("already exists", "alreadyexists")
_ALIVE = ("Pending", "Running")
_ENDING = (ApplicationState.SUCCEEDING, ApplicationState.FAILING)
_UNCLEAR = (
    ApplicationState.UNKNOWN,
    ApplicationState.SUSPENDING,
    ApplicationState.SUSPENDED,
    ApplicationState.RESUMING,
)
"""States without information about the job's progress."""
_RESUMED = (ApplicationState.SUSPENDED, ApplicationState.RESUMING)
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
    """True if its application has ended."""
    has_succeeded: bool = False
    """True if its application succeeded."""


def observe_run(application: Application, pod: DriverPod | None, quota: str = "") -> RunObservation:
    """The state of a run by its application, its driver pod, and the quota that it waits for."""
    state, message = application.state, application.message
    trouble = pod.trouble if pod is not None else ""
    if application.is_deleting and not state.is_terminal:
        return RunObservation(CurrentPhase.ENDING, "its application to be deleted")
    is_there = any(text in message.lower() for text in _ALREADY_THERE)
    if state is ApplicationState.FAILED and is_there:
        return _behind_failure(message, pod)
    if state.is_terminal:
        return RunObservation(None, "", True, state is ApplicationState.COMPLETED)
    if state in _ENDING:
        return RunObservation(CurrentPhase.ENDING, "its application to end")
    if quota:
        return RunObservation(CurrentPhase.QUOTA_PENDING, quota)
    if application.queue and state in _RESUMED:
        return RunObservation(CurrentPhase.SUBMITTED, f"its application, which is {state}")
    if state in _UNCLEAR:
        return RunObservation(None, joined(f"its application, which is {state}", message, trouble))
    if state is ApplicationState.RUNNING:
        return RunObservation(CurrentPhase.RUNNING, "")
    unseen = _UNSEEN_HERE if application.submitter is Submitter.LOCAL else _UNSEEN
    begun = f"its application, which is {state}" if state else unseen
    return RunObservation(CurrentPhase.SUBMITTED, joined(begun, message, trouble))


def final_report(view: RunView, run: str) -> Report | None:
    """The final report of a run; reports of other resources or runs are ignored."""
    report = any_report(view, run)
    return report if report is not None and report.phase is not RunPhase.RUNNING else None


def any_report(view: RunView, run: str) -> Report | None:
    """The report of a run, whether or not it has ended."""
    found = view.runs.reports.get(run)
    if found is None or found.report is None:
        return None
    report = found.report
    return report if report.uid == view.uid and report.run_id == run else None


def report_trouble(view: RunView, run: str) -> str:
    """The cause if the report of a run is ignored; empty if it is valid or missing."""
    found = view.runs.reports.get(run)
    if found is None:
        return ""
    if found.report is None:
        return f"its report cannot be read: {found.trouble}"
    if any_report(view, run) is None:
        return "its report belongs to another run"
    return ""


def _behind_failure(message: str, pod: DriverPod | None) -> RunObservation:
    """The state of a submission that failed because of an earlier one."""
    if pod is None:
        return RunObservation(None, "", True, False)
    if is_alive(pod):
        phase = CurrentPhase.RUNNING if pod.phase == "Running" else CurrentPhase.SUBMITTED
        why = f"the driver of an earlier submission, pod {pod.name}, is {pod.phase}"
        return RunObservation(phase, joined(why, pod.trouble))
    return RunObservation(None, "", True, pod.phase == "Succeeded")


def is_alive(pod: DriverPod | None) -> bool:
    """Return whether a driver may still be running."""
    return pod is not None and pod.phase in _ALIVE


def has_attempts(last: LastRun, retry: Retry) -> bool:
    """Return whether a run failed and has retries left."""
    failed = last.phase is not LastPhase.SUCCEEDED and last.retryable
    return failed and last.attempt < retry.limit
