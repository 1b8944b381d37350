"""A run at work: its phase follows from its application, and every wait has a reason."""

from dataclasses import replace

import pytest
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    a_report,
    a_run,
    an_application,
    an_end,
    an_output,
    conditions_of,
    current_of,
    decided,
    flying,
    last_of,
    observing,
    phase_of,
    ready,
    with_status,
)

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastPhase, RunAction
from snaploom_operator.decision import Delete, ObservedOutput, ObservedRuns
from snaploom_operator.objects import ANNOTATION_PAUSED, ApplicationState, DriverPod, FoundReport

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
def test_states_that_are_not_terminal_only_move_the_phase(state, phase, waits):
    decision = decided(flying(a_run(), an_application(state)))
    current = current_of(decision)
    assert current.phase is phase
    assert bool(current.waiting_for) is waits
    assert last_of(decision) is None
    assert not decision.actions


def test_state_without_meaning_keeps_the_phase() -> None:
    assert phase_of(flying(a_run("Running"), an_application(State.UNKNOWN))) is CurrentPhase.RUNNING


def test_suspended_application_is_waited_for_without_a_timeout() -> None:
    decision = decided(flying(a_run(since=-90_000), an_application(State.SUSPENDED)))
    current = current_of(decision)
    assert current.stopping is None
    assert current.waiting_for == "its application, which is SUSPENDED"


def test_wait_names_what_the_drivers_pod_waits_for() -> None:
    pod = DriverPod("driver", RUN, "Pending", "ImagePullBackOff: no such image")
    decision = decided(flying(a_run(), an_application(), pod=pod))
    current = current_of(decision)
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
    assert current.progress == "snapshot 3 of 12, join 4 of 9"
    assert decision.status.conditions[:2] == quiet.status.conditions[:2]


def test_application_that_was_recreated_is_followed_with_a_warning() -> None:
    observed = flying(a_run("Running"), an_application(State.RUNNING, uid="another"))
    decision = decided(observed)
    current = current_of(decision)
    assert current.uid == "another"
    assert [note.reason for note in decision.notes] == ["RunRecreated"]


def test_application_that_is_being_deleted_is_waited_for() -> None:
    observed = flying(a_run("Running"), an_application(State.RUNNING, is_deleting=True))
    current = current_of(decided(observed))
    assert current.phase is CurrentPhase.ENDING
    assert current.waiting_for == "its application to be deleted"


@pytest.mark.parametrize("phase", ["Queued", "Submitting"])
def test_application_that_the_status_does_not_know_is_adopted(phase: str) -> None:
    foreign = an_application(State.RUNNING, "ods-wide-ffffffff", attempt=2)
    current = current_of(decided(flying(a_run(phase), foreign)))
    assert (current.name, current.attempt) == (foreign.name, 2)
    assert current.phase is CurrentPhase.RUNNING


def test_lost_status_is_made_again_from_the_newest_application() -> None:
    old = an_application(State.COMPLETED, "ods-wide-aaaaaaaa", started_at=1)
    new = an_application(State.COMPLETED, "ods-wide-bbbbbbbb", started_at=2)
    report = a_report(run=new.name)
    observed = observing(an_output(), applications=(new, old), reports={new.name: report})
    decision = decided(observed)
    last = last_of(decision)
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


def test_end_with_a_report_is_evaluated_at_once() -> None:
    decision = decided(flying(a_run("Running"), an_application(State.COMPLETED), a_report()))
    last, status = last_of(decision), decision.status
    assert (last.id, last.phase, last.trigger.declarations) == (
        RUN,
        LastPhase.SUCCEEDED,
        DECLARATIONS,
    )
    assert status.current_run is None
    assert status.realised == DECLARATIONS
    assert (status.latest_snapshot.rows, status.snapshot_count) == (3, 1)
    assert status.manifest is not None
    assert ready(decision) == ("True", "Published")
    assert [note.reason for note in decision.notes] == ["RunSucceeded"]


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
def test_end_without_a_report_waits_for_it_a_minute(state: State) -> None:
    first = decided(flying(a_run("Running"), an_application(state)))
    current = current_of(first)
    assert (current.phase, current.waiting_for) == (CurrentPhase.ENDING, "the report of its job")
    assert first.requeue_after == pytest.approx(60)
    late = decided(flying(a_run("Ending", since=-61), an_application(state)))
    last = last_of(late)
    expected = LastPhase.SUCCEEDED if state is State.COMPLETED else LastPhase.FAILED
    assert last.phase is expected


@pytest.mark.parametrize(
    ("state", "phase", "outcome", "realised"),
    [
        pytest.param(State.COMPLETED, "SUCCEEDED", LastPhase.SUCCEEDED, True, id="both well"),
        pytest.param(State.FAILED, "SUCCEEDED", LastPhase.FAILED, False, id="it died afterwards"),
        pytest.param(State.COMPLETED, "FAILED", LastPhase.FAILED, False, id="as the report states"),
        pytest.param(State.FAILED, "FAILED", LastPhase.FAILED, False, id="both badly"),
        pytest.param(State.FAILED, "INTERRUPTED", LastPhase.FAILED, False, id="evicted"),
    ],
)
def test_run_failed_if_its_report_or_its_application_failed(state, phase, outcome, realised):
    decision = decided(flying(a_run("Running"), an_application(state), a_report(phase)))
    last, status = last_of(decision), decision.status
    assert last.phase is outcome
    assert (status.realised is not None) is realised
    assert status.latest_snapshot is not None  # publications in the report count


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(a_report(uid="another"), id="of a resource before it"),
        pytest.param(replace(a_report(), report=a_report(run="other").report), id="of another run"),
        pytest.param(FoundReport(RUN, None, "written by a newer Snaploom"), id="unreadable"),
    ],
)
def test_report_that_does_not_count_is_named_and_ignored(ignored: FoundReport) -> None:
    run = a_run("Ending", since=-61)
    decision = decided(flying(run, an_application(State.FAILED), ignored))
    last = last_of(decision)
    assert last.phase is LastPhase.FAILED
    assert "its report" in last.message
    status = decision.status
    assert status.latest_snapshot is None


def test_application_that_went_away_is_decided_by_its_report() -> None:
    last = last_of(decided(flying(a_run("Running"), None, a_report())))
    assert last.phase is LastPhase.SUCCEEDED


def test_application_that_went_away_without_a_report_is_lost_after_a_minute() -> None:
    assert phase_of(flying(a_run("Running"))) is CurrentPhase.ENDING
    last = last_of(decided(flying(a_run("Ending", since=-61))))
    assert (last.phase, last.reason, last.retryable) == (LastPhase.LOST, "RunLost", True)


THERE = "driver pod ods-driver already exists"


@pytest.mark.parametrize(
    ("pod", "phase"),
    [
        pytest.param("Running", CurrentPhase.RUNNING, id="at work"),
        pytest.param("Pending", CurrentPhase.SUBMITTED, id="about to start"),
    ],
)
def test_failure_does_not_count_while_the_driver_of_an_earlier_submission_runs(pod, phase):
    failed = an_application(State.FAILED, message=THERE)
    decision = decided(flying(a_run(), failed, pod=DriverPod("ods-driver", RUN, pod, "")))
    current = current_of(decision)
    assert current.phase is phase
    assert "earlier submission" in (current.waiting_for or "")


def test_driver_of_an_earlier_submission_decides_when_it_has_ended() -> None:
    failed = an_application(State.FAILED, message=THERE)
    pod = DriverPod("ods-driver", RUN, "Succeeded", "")
    last = last_of(decided(flying(a_run(), failed, a_report(), pod)))
    assert last.phase is LastPhase.SUCCEEDED


def test_failure_because_of_a_missing_pod_counts_after_a_minute() -> None:
    failed = an_application(State.FAILED, message=THERE)
    assert phase_of(flying(a_run(), failed)) is CurrentPhase.ENDING
    assert last_of(decided(flying(a_run("Ending", since=-61), failed))) is not None


def test_times_that_cannot_be_read_are_long_ago() -> None:
    run = a_run("Ending").model_copy(update={"since": "yesterday"})
    assert last_of(decided(flying(run, an_application(State.FAILED)))) is not None


def stopped(observed: ObservedOutput) -> str | None:
    decision = decided(observed)
    current = current_of(decision)
    assert not decision.actions  # the intention is written first
    return current.stopping if current is not None else None


@pytest.mark.parametrize(
    ("run", "state", "settings", "reason"),
    [
        pytest.param(a_run(since=-601), State.SUBMITTED, {}, "StartTimeout", id="never started"),
        pytest.param(a_run(since=-599), State.SUBMITTED, {}, None, id="may still start"),
        pytest.param(
            a_run("Running", since=-61), State.RUNNING, {"activeDeadlineSeconds": 60},
            "DeadlineExceeded", id="too long",
        ),
        pytest.param(
            a_run("Running", since=-59), State.RUNNING, {"activeDeadlineSeconds": 60}, None,
            id="long",
        ),
        pytest.param(a_run("Running", since=-9000), State.RUNNING, {}, None, id="no limit"),
        pytest.param(a_run(since=9000), State.SUBMITTED, {}, None, id="a clock was set back"),
    ],
)  # fmt: skip
def test_run_is_stopped_when_it_takes_too_long(run, state, settings, reason):
    assert stopped(flying(run, an_application(state), **settings)) == reason


@pytest.mark.parametrize(("policy", "reason"), [("Forbid", None), ("Replace", "RunStopped")])
def test_newer_run_replaces_the_one_in_flight_only_where_that_is_declared(policy, reason):
    observed = flying(a_run("Running"), an_application(State.RUNNING), concurrencyPolicy=policy)
    assert stopped(observed) is None
    assert stopped(replace(observed, declarations="others")) == reason


def test_suspended_resource_lets_the_run_in_flight_go_on() -> None:
    observed = flying(
        a_run("Running"), an_application(State.RUNNING), concurrencyPolicy="Replace", suspend=True
    )
    assert stopped(replace(observed, declarations="others")) is None
    decision = decided(observed)
    assert ready(decision) == ("False", "RunRunning")
    assert conditions_of(decision)["Suspended"] == ("True", "Suspended")


def test_run_that_is_being_stopped_is_deleted_and_ends_when_it_is_gone() -> None:
    run = a_run("Ending", stopping="StartTimeout", waiting_for="ImagePullBackOff")
    (deletion,) = decided(flying(run, an_application())).actions
    assert isinstance(deletion, Delete)
    assert (deletion.resource.kind, deletion.name, deletion.uid) == (
        "SparkApplication",
        RUN,
        "application-1",
    )
    assert not decided(flying(run, an_application(is_deleting=True))).actions
    last = last_of(decided(flying(run)))
    assert (last.phase, last.reason, last.retryable) == (LastPhase.FAILED, "StartTimeout", True)
    assert "ImagePullBackOff" in last.message


def test_run_that_ends_well_while_it_is_being_stopped_has_ended_well() -> None:
    run = a_run("Ending", stopping="DeadlineExceeded")
    last = last_of(decided(flying(run, an_application(State.COMPLETED), a_report())))
    assert last.phase is LastPhase.SUCCEEDED


def test_replaced_run_makes_way_for_the_newer_one() -> None:
    run = a_run("Ending", stopping="RunStopped")
    decision = decided(replace(flying(run), declarations="others"))
    last = last_of(decision)
    assert (last.phase, last.retryable) == (LastPhase.STOPPED, False)
    following = with_status(flying(run), current_run=None, last_run=last)
    current = current_of(decided(replace(following, declarations="others")))
    assert current.trigger.declarations == "others"


def test_run_that_is_stopped_for_no_reason_of_ours_ends_as_stopped() -> None:
    run = a_run("Ending", stopping="anything")
    decision = decided(replace(flying(run), runs=ObservedRuns()))
    last = last_of(decision)
    assert (last.phase, last.reason) == (LastPhase.STOPPED, "RunStopped")


def test_paused_resource_is_followed_and_not_acted_on() -> None:
    paused = {ANNOTATION_PAUSED: "true"}
    status = OutputDatasetStatus(current_run=a_run("Submitting"))
    assert not decided(an_output(status, paused)).actions
    late = OutputDatasetStatus(current_run=a_run(since=-9000))
    observed = observing(an_output(late, paused), applications=(an_application(),))
    assert stopped(observed) is None
    running = observing(observed, applications=(an_application(State.RUNNING),))
    assert phase_of(running) is CurrentPhase.RUNNING


def test_run_that_is_being_stopped_waits_while_paused() -> None:
    status = OutputDatasetStatus(current_run=a_run("Ending", stopping="StartTimeout"))
    paused = an_output(status, {ANNOTATION_PAUSED: "true"})
    assert not decided(observing(paused, applications=(an_application(),))).actions
