"""Queues of the cluster's scheduler: what is put into them, and runs that wait there for quota."""

from typing import Any

import pytest
from support.operator.observations import (
    RUN,
    a_run,
    an_application,
    an_output,
    conditions_of,
    current_of,
    flying,
    last_of,
    observing,
    ready,
)
from support.operator.runrequests import a_request, stored
from support.operator.runrequests import an_output as a_stored_output

from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, Submitter
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import Decision, ObservedOutput
from snaploom_operator.objects import (
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
    ref_of,
)
from snaploom_operator.settings import OperatorSettings, QueueScheduler
from snaploom_operator.store.entries import ChildReader
from snaploom_operator.submit.applications import FORMS

State = ApplicationState
ANSWER = "couldn't assign flavors to pod set driver: insufficient unused quota for cpu"
GATE = "kueue.x-k8s.io/queue-name"


def pending(reason: str, phase: str = "Pending") -> DriverPod:
    return DriverPod("driver", RUN, phase, f"{reason}: {ANSWER}", unscheduled=reason)


def decided(observed: ObservedOutput, scheduler: QueueScheduler | None) -> Decision:
    return decide(observed, DecideSettings.of(OperatorSettings(queue_scheduler=scheduler)))


def waiting(
    scheduler: QueueScheduler,
    run: CurrentRun,
    application: Application,
    pod: DriverPod | None = None,
    quota: str = "",
) -> Decision:
    observed = flying(run, application, pod=pod, queue="team-a")
    return decided(observing(observed, quota={RUN: quota} if quota else {}), scheduler)


def suspended(state: ApplicationState) -> Application:
    return an_application(state, queue="team-a", is_suspended=True)


SUBMITTED = an_application(queue="team-a")
WAITS = [
    pytest.param(QueueScheduler.KUEUE, suspended(State.NEW), None, id="Kueue, new"),
    pytest.param(QueueScheduler.KUEUE, suspended(State.SUSPENDING), None, id="Kueue, noticed"),
    pytest.param(QueueScheduler.KUEUE, suspended(State.SUSPENDED), None, id="Kueue"),
    pytest.param(QueueScheduler.KUEUE_PODS, SUBMITTED, pending("SchedulingGated"), id="Kueue, pod"),
    pytest.param(QueueScheduler.YUNIKORN, SUBMITTED, pending("SchedulingSkipped"), id="YuniKorn"),
    pytest.param(QueueScheduler.VOLCANO, SUBMITTED, pending("Unschedulable"), id="Volcano"),
]


@pytest.mark.parametrize(("scheduler", "application", "pod"), WAITS)
def test_run_without_quota_shows_the_answer_of_its_queue_and_is_not_stopped(
    scheduler: QueueScheduler, application: Application, pod: DriverPod | None
) -> None:
    decision = waiting(scheduler, a_run(since=-90_000), application, pod, ANSWER)
    current = current_of(decision)
    assert (current.phase, current.stopping) == (CurrentPhase.QUOTA_PENDING, None)
    assert current.waiting_for == f"quota in the queue team-a: {ANSWER}"
    assert ready(decision) == ("False", "QuotaPending")
    again = waiting(scheduler, current, application, pod, ANSWER)
    assert not again.actions
    assert again.requeue_after is None


@pytest.mark.parametrize(
    ("scheduler", "application", "pod"),
    [
        (QueueScheduler.KUEUE, an_application(State.SUSPENDED, queue="team-a"), None),
        (QueueScheduler.KUEUE, an_application(State.RESUMING, queue="team-a"), None),
        (QueueScheduler.KUEUE_PODS, SUBMITTED, pending("Unschedulable")),
        (QueueScheduler.YUNIKORN, SUBMITTED, pending("Unschedulable")),
        (QueueScheduler.VOLCANO, SUBMITTED, pending("")),
        (QueueScheduler.VOLCANO, SUBMITTED, None),
    ],
)
def test_time_to_start_counts_from_when_the_quota_is_there(scheduler, application, pod):
    decision = waiting(scheduler, a_run("QuotaPending", since=-90_000), application, pod)
    current = current_of(decision)
    assert (current.phase, current.stopping) == (CurrentPhase.SUBMITTED, None)
    late = current.model_copy(update={"since": a_run(since=-601).since})
    stopped = current_of(waiting(scheduler, late, application, pod))
    assert stopped.stopping == "StartTimeout"


@pytest.mark.parametrize("state", [State.RUNNING, State.SUSPENDING, State.SUSPENDED])
def test_running_run_whose_quota_is_taken_back_is_stopped_and_tried_again(state):
    scheduler = QueueScheduler.KUEUE
    current = current_of(waiting(scheduler, a_run("Running"), suspended(state)))
    assert current.stopping == "QuotaLost"
    (deletion,) = waiting(scheduler, current, suspended(State.SUSPENDED)).actions
    assert getattr(deletion, "name", None) == RUN
    last = last_of(decided(flying(current, queue="team-a"), scheduler))
    assert (last.phase, last.reason, last.retryable) == (LastPhase.STOPPED, "QuotaLost", True)


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
def test_run_that_has_ended_waits_for_no_quota(state: ApplicationState) -> None:
    report = FoundReport(RUN, None, "")
    observed = flying(a_run("Ending", since=-90), suspended(state), report, queue="team-a")
    assert last_of(decided(observed, QueueScheduler.KUEUE)) is not None


def test_application_that_was_put_into_no_queue_waits_for_no_quota() -> None:
    application = an_application(State.SUSPENDED, is_suspended=True)
    decision = waiting(QueueScheduler.KUEUE, a_run(), application)
    assert ready(decision) == ("False", "RunSubmitted")


@pytest.mark.parametrize(
    ("scheduler", "submitter", "stalls"),
    [
        (None, "SparkOperator", True),
        (QueueScheduler.KUEUE, "ApacheSpark", True),
        (QueueScheduler.KUEUE, "SparkOperator", False),
        (QueueScheduler.KUEUE_PODS, "ApacheSpark", False),
        (None, "Local", False),
    ],
)
def test_queue_that_nobody_has_stalls(scheduler, submitter, stalls):
    observed = an_output(queue="team-a", submitter=submitter)
    there = observing(observed, available=frozenset({Submitter(submitter)}))
    decision = decided(there, scheduler)
    assert ("Stalled" in conditions_of(decision)) is stalls
    if stalls:
        assert ready(decision) == ("False", "QueueNotAvailable")
        assert "team-a" in decision.status.conditions[0].message


def made(scheduler: QueueScheduler | None, submitter: Submitter, **run: Any) -> Any:
    request = a_request(a_stored_output(**run), queue_scheduler=scheduler)
    return FORMS[submitter].manifest(request)


def templates(manifest: Any) -> list[Any]:
    spec = manifest["spec"]
    if "driverSpec" in spec:
        return [spec[f"{role}Spec"]["podTemplateSpec"] for role in ("driver", "executor")]
    return [spec[role]["template"] for role in ("driver", "executor")]


def test_application_in_a_queue_of_kueue_is_created_suspended_with_its_cores() -> None:
    manifest = made(QueueScheduler.KUEUE, Submitter.SPARK_OPERATOR, queue="team-a")
    plain = made(QueueScheduler.KUEUE, Submitter.SPARK_OPERATOR)
    assert manifest["metadata"]["labels"] == {**plain["metadata"]["labels"], GATE: "team-a"}
    assert manifest["spec"]["suspend"] is True
    cores = [manifest["spec"][role]["coreRequest"] for role in ("driver", "executor")]
    assert cores == ["1", "1"]
    assert templates(manifest) == templates(plain)
    assert "suspend" not in plain["spec"]


@pytest.mark.parametrize("submitter", [Submitter.SPARK_OPERATOR, Submitter.APACHE_SPARK])
@pytest.mark.parametrize(
    ("scheduler", "labels", "annotations", "name"),
    [
        (QueueScheduler.KUEUE_PODS, {GATE: "team-a"}, {}, None),
        (QueueScheduler.YUNIKORN, {"queue": "team-a"}, {}, "yunikorn"),
        (QueueScheduler.VOLCANO, {}, {"scheduling.volcano.sh/queue-name": "team-a"}, "volcano"),
    ],
)
def test_pods_are_marked_for_their_queue(submitter, scheduler, labels, annotations, name):
    asked = {"podTemplate": {"labels": {"queue": "root.best", "team": "a"}}}
    manifest = made(scheduler, submitter, queue="team-a", spark=asked)
    for pod in templates(manifest):
        metadata = pod["metadata"]
        assert {key: metadata["labels"].get(key) for key in labels} == labels
        assert metadata["labels"]["team"] == "a"
        assert {key: metadata["annotations"][key] for key in annotations} == annotations
        assert pod["spec"].get("schedulerName") == name
    assert "suspend" not in manifest["spec"]


def test_executors_are_not_left_out_of_the_queue_by_kueue() -> None:
    manifest = made(QueueScheduler.KUEUE_PODS, Submitter.APACHE_SPARK, queue="team-a")
    driver, executor = (pod["metadata"] for pod in templates(manifest))
    assert executor["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert executor["annotations"]["kueue.x-k8s.io/pod-suspending-parent"]
    assert "kueue.x-k8s.io/managed" not in driver["labels"]


def test_application_is_read_with_its_queue() -> None:
    for scheduler, is_suspended in ((QueueScheduler.KUEUE, True), (QueueScheduler.YUNIKORN, False)):
        manifest = made(scheduler, Submitter.SPARK_OPERATOR, queue="team-a")
        application = FORMS[Submitter.SPARK_OPERATOR].read(stored(manifest))
        assert (application.queue, application.is_suspended) == ("team-a", is_suspended)


@pytest.mark.parametrize(
    ("gates", "reason", "unscheduled"),
    [
        (["kueue.x-k8s.io/admission"], "SchedulingGated", "SchedulingGated"),
        ([], "SchedulingGated", ""),
        ([], "Unschedulable", "Unschedulable"),
    ],
)
def test_pod_is_gated_as_long_as_it_has_a_gate(gates, reason, unscheduled):
    labels = {"snaploom.io/owner-uid": "u", "snaploom.io/run": RUN, "spark-role": "driver"}
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "gated"}
    pod: Any = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "driver", "namespace": "shop", "uid": "p1", "labels": labels},
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }  # fmt: skip
    child = ChildReader(()).read(ref_of(pod), 1, pod)
    assert getattr(child.view, "unscheduled", None) == unscheduled


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([("QuotaReserved", "False", ANSWER)], ANSWER),
        ([("QuotaReserved", "True", "reserved"), ("Admitted", "False", "a check")], "a check"),
        ([("QuotaReserved", "True", "reserved"), ("Admitted", "True", "admitted")], ""),
        ([("Evicted", "True", "Preempted"), ("QuotaReserved", "False", "Preempted")], "Preempted"),
        ([], ""),
    ],
)
def test_answer_of_a_queue_is_read_until_it_has_admitted_the_run(conditions, message):
    found = [{"type": kind, "status": held, "message": text} for kind, held, text in conditions]
    labels = {"snaploom.io/owner-uid": "u", "snaploom.io/run": RUN}
    workload: Any = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "w", "namespace": "shop", "uid": "w1", "labels": labels},
        "status": {"conditions": found},
    }  # fmt: skip
    child = ChildReader(()).read(ref_of(workload), 1, workload)
    assert (child.owner_uid, child.run, getattr(child.view, "message", None)) == ("u", RUN, message)
