"""What becomes of an application, as a list of steps; `JobDouble` plays them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from support.operator.jobreports import failed, progressing, published

from snaploom.models.report import Report
from snaploom_operator.objects import Application, ApplicationState

S = ApplicationState


@dataclass(frozen=True)
class State:
    """Its controller writes it."""

    state: ApplicationState
    message: str = ""


@dataclass(frozen=True)
class Pod:
    """The driver's pod is in this phase; it is created where there is none."""

    phase: str
    reason: str = ""
    """Reason of the condition that is not met, or of the container that waits or ended."""
    message: str = ""
    waits: bool = False
    """Whether it is the container that waits, rather than the pod that is not scheduled."""
    exit_code: int | None = None


@dataclass(frozen=True)
class PodGone:
    """The driver's pod is deleted."""


@dataclass(frozen=True)
class Reported:
    """The job writes its Report."""

    report: Report
    run: str = ""
    """Run that it names; empty for the right one."""
    uid: str = ""
    """UID that it names; empty for the right one."""


@dataclass(frozen=True)
class ReportText:
    """Something writes a text where the Report belongs."""

    text: str


@dataclass(frozen=True)
class Gone:
    """The application is deleted: by a person, or by its time to live."""


@dataclass(frozen=True)
class Recreated:
    """The application is deleted and created again, with another UID."""


@dataclass(frozen=True)
class Hold:
    """Nothing more happens until the test continues."""


Step = State | Pod | PodGone | Reported | ReportText | Gone | Recreated | Hold
Script = tuple[Step, ...]
Chooser = Callable[[Application], Script]


def completes(final: Report | None = None, *, running: Report | None = None) -> Script:
    """It runs and ends well.

    Args:
        final: its last Report.
        running: its Report while it runs.
    """
    return (
        *_until_running(),
        Reported(running or progressing()),
        Reported(final or published()),
        *_ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0)),
    )


def fails(
    final: Report | None = None, message: str = "driver container failed with ExitCode: 1"
) -> Script:
    """It runs and fails, with a reason."""
    return (*_until_running(), Reported(final or failed()), *_breaks(message))


def dies(message: str = "driver container failed with ExitCode: 137, Reason: OOMKilled") -> Script:
    """It runs and is killed, and leaves no last Report."""
    return (*_until_running(), Reported(progressing()), *_breaks(message, "OOMKilled", 137))


def hangs_in(state: ApplicationState) -> Script:
    """It gets as far as this, and no farther."""
    way = (*_until_running(), State(S.SUCCEEDING))
    for length, step in enumerate(way, start=1):
        if isinstance(step, State) and step.state is state:
            return way[:length]
    return () if state is S.NEW else (*_until_running(), State(state))


def waits_for_image(image: str = "registry.invalid/spark:1") -> Script:
    """Its image cannot be pulled."""
    message = f'Back-off pulling image "{image}"'
    return (State(S.SUBMITTED), Pod("Pending", "ImagePullBackOff", message, waits=True))


def cannot_be_scheduled(message: str = "0/3 nodes are available: 3 Insufficient memory.") -> Script:
    """No node has room for its driver."""
    return (State(S.SUBMITTED), Pod("Pending", "Unschedulable", message))


def vanishes(after: ApplicationState = S.RUNNING, final: Report | None = None) -> Script:
    """It is deleted before its end was observed.

    Args:
        after: the state that it was in.
        final: the last Report that it wrote before; None for none.
    """
    reported = () if final is None else (Reported(final),)
    return (*hangs_in(after), *reported, Gone())


def recreated(final: Report | None = None) -> Script:
    """It is deleted while it runs, and created again."""
    return (*_until_running(), Recreated(), *completes(final))


def submission_failed_then_runs(final: Report | None = None) -> Script:
    """Its submission fails at first; its controller tries again."""
    refused = State(S.SUBMISSION_FAILED, "failed to run spark-submit: connection refused")
    return (refused, State(S.PENDING_RERUN), *completes(final))


def cannot_be_submitted(message: str = "failed to run spark-submit: quota exceeded") -> Script:
    """Its submission fails for good."""
    return (State(S.SUBMISSION_FAILED, message), State(S.FAILED, message))


def driver_already_exists(final: Report | None = None) -> Script:
    """An earlier submission of it works on while its controller calls it failed."""
    message = "failed to submit spark application: driver pod already exist"
    return (
        Pod("Pending"),
        Pod("Running"),
        State(S.SUBMISSION_FAILED, message),
        State(S.FAILED, message),
        Reported(progressing()),
        Hold(),
        Reported(final or published()),
        Pod("Succeeded", "Completed", exit_code=0),
    )


def report_late(final: Report | None = None) -> Script:
    """Its last Report arrives after its end was observed."""
    end = _ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0))
    return (*_until_running(), *end, Hold(), Reported(final or published()))


def no_report() -> Script:
    """It ends well and leaves no Report at all."""
    return (
        *_until_running(),
        *_ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0)),
    )


def report_of_other_run(run: str = "", uid: str = "") -> Script:
    """In place of its Report there is one of another run, or of another resource."""
    return (
        *_until_running(),
        Reported(published(), run=run or ("" if uid else "ods-other-00000000"), uid=uid),
        *_ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0)),
    )


def report_unreadable(text: str = '{"format": 1, "phase": ') -> Script:
    """In place of its Report there is another text."""
    return (
        *_until_running(),
        ReportText(text),
        *_ends(S.SUCCEEDING, S.COMPLETED, Pod("Succeeded", "Completed", exit_code=0)),
    )


def is_suspended() -> Script:
    """It is suspended."""
    return (*_until_running(), State(S.SUSPENDING), PodGone(), State(S.SUSPENDED))


def through(*states: ApplicationState) -> Script:
    """It reports one after another, and nothing else happens."""
    return tuple(State(state) for state in states)


def in_turn(*scripts: Script) -> Chooser:
    """A further script for every further application; the last one for all that follow."""
    order: Iterator[Script] = iter(scripts)
    last = _Last(scripts[0])

    def choose(_: Application) -> Script:
        last.script = next(order, last.script)
        return last.script

    return choose


@dataclass
class _Last:
    script: Script = field(default=())


def _until_running() -> Script:
    return (State(S.SUBMITTED), Pod("Pending"), Pod("Running"), State(S.RUNNING))


def _ends(passing: ApplicationState, last: ApplicationState, pod: Pod, message: str = "") -> Script:
    return (pod, State(passing, message), State(last, message))


def _breaks(message: str, reason: str = "Error", exit_code: int = 1) -> Script:
    return _ends(S.FAILING, S.FAILED, Pod("Failed", reason, exit_code=exit_code), message)
