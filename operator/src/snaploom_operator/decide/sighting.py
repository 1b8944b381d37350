"""What is seen of a run: its application, its driver's pod and its report, as one statement.

Only COMPLETED and FAILED end a run, and FAILED not always: where the message says that the driver's
pod is there already, an earlier submission of the same application may be at work (`operator.md`
section 4). So the pod is looked at before that is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.report import Report, RunPhase
from snaploom.models.run import CurrentPhase, Submitter
from snaploom_operator.decide.view import RunView
from snaploom_operator.objects import Application, ApplicationState, DriverPod

_ALREADY_THERE = ("already exists", "alreadyexists")
_ALIVE = ("Pending", "Running")
_ENDING = (ApplicationState.SUCCEEDING, ApplicationState.FAILING)
_UNCLEAR = (
    ApplicationState.UNKNOWN,
    ApplicationState.SUSPENDING,
    ApplicationState.SUSPENDED,
    ApplicationState.RESUMING,
)
"""States that say nothing about how far the job is."""
_UNSEEN = (
    "its application to be taken up, by an operator for applications of its kind that runs and "
    "looks after this namespace"
)
_UNSEEN_HERE = "a place among the jobs that the operator runs itself"


@dataclass(frozen=True)
class Sight:
    """How far a run is."""

    phase: CurrentPhase | None
    """Its phase; None when that is not to be seen now."""
    waiting_for: str
    """What it waits for; empty when it is at work."""
    has_ended: bool = False
    """Whether its application says that it is over."""
    has_succeeded: bool = False
    """Whether it says that it ended well."""


def sight(application: Application, pod: DriverPod | None) -> Sight:
    """How far an application is."""
    state, message = application.state, application.message
    trouble = pod.trouble if pod is not None else ""
    if application.is_deleting and not state.is_terminal:
        return Sight(CurrentPhase.ENDING, "its application to be deleted")
    if state is ApplicationState.FAILED and _is_there_already(message):
        return _behind_failure(message, pod)
    if state.is_terminal:
        return Sight(None, "", True, state is ApplicationState.COMPLETED)
    if state in _UNCLEAR:
        return Sight(None, _joined(f"its application, which is {state}", message, trouble))
    if state in _ENDING:
        return Sight(CurrentPhase.ENDING, "its application to end")
    if state is ApplicationState.RUNNING:
        return Sight(CurrentPhase.RUNNING, "")
    unseen = _UNSEEN_HERE if application.submitter is Submitter.LOCAL else _UNSEEN
    begun = f"its application, which is {state}" if state else unseen
    return Sight(CurrentPhase.SUBMITTED, _joined(begun, message, trouble))


def final_report(view: RunView, run: str) -> Report | None:
    """The report of a run that has ended; one of another resource or run does not count."""
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
    """Why the report of a run does not count, for people; empty when it does, or is not there."""
    found = view.runs.reports.get(run)
    if found is None:
        return ""
    if found.report is None:
        return f"its report cannot be read: {found.trouble}"
    if any_report(view, run) is None:
        return "its report belongs to another run"
    return ""


def _behind_failure(message: str, pod: DriverPod | None) -> Sight:
    """A submission that failed because of one before it."""
    if pod is None:
        return Sight(None, "", True, False)
    if pod.phase in _ALIVE:
        phase = CurrentPhase.RUNNING if pod.phase == "Running" else CurrentPhase.SUBMITTED
        why = f"the driver of an earlier submission, pod {pod.name}, is {pod.phase}"
        return Sight(phase, _joined(why, pod.trouble))
    return Sight(None, "", True, pod.phase == "Succeeded")


def _is_there_already(message: str) -> bool:
    return any(text in message.lower() for text in _ALREADY_THERE)


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
