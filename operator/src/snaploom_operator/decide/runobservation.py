"""The observed state of a run, from its application, its driver's pod and its report.

Only COMPLETED and FAILED end a run, and FAILED not always: if the message is that the driver's pod
already exists, an earlier submission of the same application may be running (rule R6). So the pod
is checked first.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.report import Report, RunPhase
from snaploom.models.run import CurrentPhase, Submitter
from snaploom_operator.decide.runview import RunView
from snaploom_operator.objects import Application, ApplicationState, DriverPod
from snaploom_operator.statuslimits import joined

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


def observe_run(application: Application, pod: DriverPod | None) -> RunObservation:
    """The state of a run by its application and driver pod."""
    state, message = application.state, application.message
    trouble = pod.trouble if pod is not None else ""
    if application.is_deleting and not state.is_terminal:
        return RunObservation(CurrentPhase.ENDING, "its application to be deleted")
    is_there = any(text in message.lower() for text in _ALREADY_THERE)
    if state is ApplicationState.FAILED and is_there:
        return _behind_failure(message, pod)
    if state.is_terminal:
        return RunObservation(None, "", True, state is ApplicationState.COMPLETED)
    if state in _UNCLEAR:
        return RunObservation(None, joined(f"its application, which is {state}", message, trouble))
    if state in _ENDING:
        return RunObservation(CurrentPhase.ENDING, "its application to end")
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
