"""A run at work: its phase follows from its application, and every wait has a reason."""

from __future__ import annotations

import pytest
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    a_report,
    a_run,
    an_application,
    an_end,
    an_output,
    current_of,
    decided,
    flying,
    last_of,
    observing,
    phase_of,
    ready,
)

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastPhase, RunAction
from snaploom_operator.objects import ApplicationState, DriverPod

State = ApplicationState


@pytest.mark.parametrize(
    ("state", "phase", "waits"),
    [
        pytest.param(State.NEW, CurrentPhase.SUBMITTED, True, id="new"),
        pytest.param(State.SUBMITTED, CurrentPhase.SUBMITTED, True, id="submitted"),
        pytest.param(State.SUBMISSION_FAILED, CurrentPhase.SUBMITTED, True, id="tried again"),
        pytest.param(State.PENDING_RERUN, CurrentPhase.SUBMITTED, True, id="rerun"),
        pytest.param(State.INVALIDATING, CurrentPhase.SUBMITTED, True, id="invalidating"),
        pytest.param(State.RUNNING, CurrentPhase.RUNNING, False, id="running"),
        pytest.param(State.SUCCEEDING, CurrentPhase.ENDING, True, id="succeeding"),
        pytest.param(State.FAILING, CurrentPhase.ENDING, True, id="failing"),
        pytest.param(State.SUSPENDED, CurrentPhase.SUBMITTED, True, id="suspended"),
        pytest.param(State.UNKNOWN, CurrentPhase.SUBMITTED, True, id="unknown"),
        pytest.param(State.RESUMING, CurrentPhase.SUBMITTED, True, id="resuming"),
    ],
)
def test_states_that_are_not_terminal_only_move_the_phase(
    state: State, phase: CurrentPhase, waits: bool
) -> None:
    decision = decided(flying(a_run(), an_application(state)))
    current = current_of(decision)
    assert current is not None
    assert current.phase is phase
    assert bool(current.waiting_for) is waits
    assert last_of(decision) is None
    assert not decision.actions


def test_state_without_meaning_keeps_the_phase() -> None:
    assert phase_of(flying(a_run("Running"), an_application(State.UNKNOWN))) is CurrentPhase.RUNNING


def test_suspended_application_is_waited_for_without_a_timeout() -> None:
    decision = decided(flying(a_run(since=-90_000), an_application(State.SUSPENDED)))
    current = current_of(decision)
    assert current is not None
    assert current.stopping is None
    assert current.waiting_for == "its application, which is SUSPENDED"


def test_wait_names_what_the_drivers_pod_waits_for() -> None:
    pod = DriverPod("driver", RUN, "Pending", "ImagePullBackOff: no such image")
    decision = decided(flying(a_run(), an_application(), pod=pod))
    current = current_of(decision)
    assert current is not None
    assert current.waiting_for == (
        "its application, which is SUBMITTED: ImagePullBackOff: no such image"
    )
    assert ready(decision) == ("False", "RunSubmitted")
    assert "ImagePullBackOff" in decision.status.conditions[0].message
    assert decision.requeue_after == pytest.approx(590)


def test_progress_is_copied_and_conditions_stay() -> None:
    progress = {"snapshot": 3, "snapshots": 12, "message": "snapshot 3 of 12, join 4 of 9"}
    quiet = decided(flying(a_run("Running"), an_application(State.RUNNING)))
    report = a_report("RUNNING", progress=progress)
    decision = decided(flying(a_run("Running"), an_application(State.RUNNING), report))
    current = current_of(decision)
    assert current is not None
    assert current.progress == "snapshot 3 of 12, join 4 of 9"
    assert decision.status.conditions[:2] == quiet.status.conditions[:2]


def test_application_that_was_recreated_is_followed_with_a_warning() -> None:
    observed = flying(a_run("Running"), an_application(State.RUNNING, uid="another"))
    decision = decided(observed)
    current = current_of(decision)
    assert current is not None
    assert current.uid == "another"
    assert [note.reason for note in decision.notes] == ["RunRecreated"]


def test_application_that_is_being_deleted_is_waited_for() -> None:
    observed = flying(a_run("Running"), an_application(State.RUNNING, is_deleting=True))
    current = current_of(decided(observed))
    assert current is not None
    assert current.phase is CurrentPhase.ENDING
    assert current.waiting_for == "its application to be deleted"


@pytest.mark.parametrize("phase", ["Queued", "Submitting"])
def test_application_that_the_status_does_not_know_is_adopted(phase: str) -> None:
    foreign = an_application(State.RUNNING, "ods-wide-ffffffff", attempt=2)
    current = current_of(decided(flying(a_run(phase), foreign)))
    assert current is not None
    assert (current.name, current.attempt) == (foreign.name, 2)
    assert current.phase is CurrentPhase.RUNNING


def test_lost_status_is_made_again_from_the_newest_application() -> None:
    old = an_application(State.COMPLETED, "ods-wide-aaaaaaaa", started_at=1)
    new = an_application(State.COMPLETED, "ods-wide-bbbbbbbb", started_at=2)
    report = a_report(run=new.name)
    observed = observing(an_output(), applications=(new, old), reports={new.name: report})
    decision = decided(observed)
    last = last_of(decision)
    assert last is not None
    assert (last.id, last.phase) == (new.name, LastPhase.SUCCEEDED)
    assert ready(decision) == ("True", "Published")


def test_application_that_is_older_than_the_last_run_is_history() -> None:
    old = an_application(State.RUNNING, "ods-wide-aaaaaaaa", started_at=1)
    status = OutputDatasetStatus(realised=DECLARATIONS, last_run=an_end())
    assert current_of(decided(observing(an_output(status), applications=(old,)))) is None


def test_deleting_run_of_a_resource_that_stays_is_followed() -> None:
    run = a_run("Running", action=RunAction.DELETE)
    observed = flying(run, an_application(State.RUNNING, action=RunAction.DELETE))
    assert phase_of(observed) is CurrentPhase.RUNNING
