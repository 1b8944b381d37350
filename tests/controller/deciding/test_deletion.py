"""A resource with `deletionPolicy: Delete` deletes what it published, or reports why not."""

from dataclasses import replace
from typing import Any

import pytest
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    SETTINGS,
    a_report,
    a_run,
    an_application,
    an_end,
    an_index,
    an_output,
    at,
    conditions_of,
    current_of,
    last_of,
    observing,
    ready,
)

from snaploom.models.common import parse_instant
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastPhase, RunAction
from snaploom.models.skippingindex import IndexState, SkippingIndexStatus
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import (
    AddFinalizer,
    Create,
    Decision,
    Delete,
    EventType,
    ObservedOutput,
    OwnedConfigMap,
    RemoveFinalizer,
)
from snaploom_operator.objects import (
    ANNOTATION_PAUSED,
    FINALIZER,
    Application,
    ApplicationState,
    DriverPod,
)

PUBLISHED = OutputDatasetStatus(realised=DECLARATIONS, last_run=an_end())
DELETION = RunAction.DELETE


def going(status: OutputDatasetStatus = PUBLISHED, **settings: Any) -> ObservedOutput:
    policy = {"deletionPolicy": "Delete"} | settings
    return an_output(status, finalizers=(FINALIZER,), is_deleting=True, **policy)


def decided(observed: ObservedOutput) -> Decision:
    return decide(observed, SETTINGS)


def is_released(decision: Decision) -> bool:
    return decision.actions == (RemoveFinalizer(),)


def note(decision: Decision) -> tuple[EventType, str]:
    (found,) = decision.notes
    return found.type, found.reason


@pytest.mark.parametrize(
    ("policy", "finalizers", "action"),
    [
        pytest.param("Delete", (), AddFinalizer(), id="wanted and not there"),
        pytest.param("Retain", (FINALIZER,), RemoveFinalizer(), id="there and not wanted"),
        pytest.param("Delete", (FINALIZER,), None, id="wanted and there"),
        pytest.param("Retain", (), None, id="neither"),
    ],
)
def test_finalizer_is_held_only_where_data_is_to_be_deleted(policy, finalizers, action):
    observed = an_output(PUBLISHED, finalizers=finalizers, deletionPolicy=policy)
    assert decided(observed).actions == ((action,) if action else ())


def test_deleting_resource_starts_a_run_that_deletes() -> None:
    decision = decided(going())
    current = current_of(decision)
    assert (current.action, current.phase) == (DELETION, CurrentPhase.SUBMITTING)
    assert ready(decision) == ("False", "Deleting")
    assert conditions_of(decision)["Reconciling"] == ("True", "Deleting")
    following = decided(going(PUBLISHED.model_copy(update={"current_run": current})))
    assert [type(action) for action in following.actions] == [Create, Create]


def test_data_is_deleted_although_the_sources_are_gone_already() -> None:
    run = a_run("Submitting", action=DELETION)
    status = PUBLISHED.model_copy(update={"current_run": run})
    observed = replace(going(status), bundle=None, plan=None, declarations="")
    bundle, _ = decided(observed).actions
    assert isinstance(bundle, Create)
    data = bundle.manifest["data"]
    assert '"folderUri":"/out/wide/"' in str(data["bundle.json"])


def test_resource_is_released_when_its_data_is_deleted() -> None:
    done = an_end(action=DELETION)
    decision = decided(going(PUBLISHED.model_copy(update={"last_run": done})))
    assert is_released(decision)
    assert note(decision) == (EventType.NORMAL, "DataDeleted")


def test_end_of_the_deletion_empties_the_status() -> None:
    run = a_run("Running", action=DELETION)
    removed = {"files": 3, "bytes": 9}
    observed = observing(
        going(PUBLISHED.model_copy(update={"current_run": run})),
        applications=(an_application(ApplicationState.COMPLETED, action=DELETION),),
        reports={run.name: a_report(removed=removed)},
    )
    status = decided(observed).status
    assert (status.latest_snapshot, status.manifest, status.realised) == (None, None, None)


def test_run_in_flight_is_stopped_first() -> None:
    status = PUBLISHED.model_copy(update={"current_run": a_run("Running")})
    flying = observing(going(status), applications=(an_application(ApplicationState.RUNNING),))
    current = current_of(decided(flying))
    assert current.stopping == "Deleting"
    stopping = status.model_copy(update={"current_run": current})
    (deletion,) = decided(observing(going(stopping), applications=flying.runs.applications)).actions
    assert isinstance(deletion, Delete)
    last = last_of(decided(going(stopping)))
    assert last.phase is LastPhase.STOPPED


def test_run_that_waits_is_dropped_when_the_resource_goes() -> None:
    status = PUBLISHED.model_copy(update={"current_run": a_run("Queued")})
    assert current_of(decided(going(status))) is None


@pytest.mark.parametrize(
    ("observed", "type_"),
    [
        pytest.param(going(deletionPolicy="Retain"), EventType.NORMAL, id="data is to stay"),
        pytest.param(
            observing(going(), is_namespace_terminating=True), EventType.WARNING, id="namespace"
        ),
        pytest.param(
            observing(going(), available=frozenset()), EventType.WARNING, id="no submitter"
        ),
        pytest.param(going(spark={"sparkConf": {"spark.master": "x"}}), EventType.WARNING,
                     id="a job that cannot be written down"),
        pytest.param(going(OutputDatasetStatus()), EventType.NORMAL, id="nothing published"),
    ],
)  # fmt: skip
def test_resource_is_released_where_nothing_can_delete_its_data(observed, type_):
    decision = decided(observed)
    assert is_released(decision)
    assert note(decision) == (type_, "DataLeft")


@pytest.mark.parametrize("how", ["namespace", "retain"])
def test_data_that_stays_is_reported_after_the_run_has_ended(how: str) -> None:
    def observed(status: OutputDatasetStatus, **runs: Any) -> ObservedOutput:
        policy = "Retain" if how == "retain" else "Delete"
        is_going = how == "namespace"
        return observing(
            going(status, deletionPolicy=policy), is_namespace_terminating=is_going, **runs
        )

    running = PUBLISHED.model_copy(update={"current_run": a_run("Running")})
    here = {"applications": (an_application(ApplicationState.RUNNING),)}
    stopping = current_of(decided(observed(running, **here)))
    assert stopping.stopping == "Deleting"
    ending = PUBLISHED.model_copy(update={"current_run": stopping})
    (deletion,) = decided(observed(ending, **here)).actions
    assert isinstance(deletion, Delete)
    gone = decided(observed(ending))
    assert [each.reason for each in gone.notes] == ["Deleting"]
    assert not gone.actions
    ended = PUBLISHED.model_copy(
        update={"last_run": an_end("Stopped", -1, id=RUN, reason="Deleting", retryable=False)}
    )
    pod = {RUN: DriverPod(name="driver", run=RUN, phase="Running", trouble="")}
    waits = decided(observed(ended, driver_pods=pod))
    assert not waits.actions
    assert not waits.notes
    assert is_released(decided(observed(ended)))


def test_run_that_does_not_end_holds_a_resource_for_two_minutes() -> None:
    stuck = a_run("Ending", -121, stopping="Deleting")
    status = PUBLISHED.model_copy(update={"current_run": stuck})
    runs = {"applications": (an_application(ApplicationState.RUNNING, is_deleting=True),)}
    decision = decided(observing(going(status), is_namespace_terminating=True, **runs))
    assert is_released(decision)
    assert note(decision) == (EventType.WARNING, "DataLeft")


def test_deletion_reports_what_it_removed_and_what_it_left() -> None:
    deleting = PUBLISHED.model_copy(update={"current_run": a_run("Running", action=DELETION)})
    removed = {"files": 12, "bytes": 3456, "left": 2, "leftNames": ["notes.txt", "mine.csv"]}
    over = observing(
        going(deleting),
        applications=(an_application(ApplicationState.COMPLETED, action=DELETION),),
        reports={RUN: a_report(removed=removed)},
    )
    decision = decided(over)
    summary = (
        "12 files of 3,456 bytes removed; 2 files that Snaploom did not write stay: "
        "notes.txt, mine.csv"
    )
    assert summary in decision.notes[-1].message
    last = last_of(decision)
    assert last is not None
    released = decided(going(PUBLISHED.model_copy(update={"last_run": last})))
    assert is_released(released)
    assert released.notes[0].message == f"what was published is deleted: {summary}"


def test_failed_deletion_is_tried_again_and_then_keeps_the_resource() -> None:
    def after(attempt: int, ended: float = -9000) -> Decision:
        failed = an_end("Failed", ended, action=DELETION, attempt=attempt)
        return decided(going(PUBLISHED.model_copy(update={"last_run": failed})))

    again = current_of(after(1))
    assert again.attempt == 2
    assert after(1, ended=-1).requeue_after == pytest.approx(119)
    stuck = after(3)
    assert not stuck.actions
    assert conditions_of(stuck)["Stalled"] == ("True", "RetriesExhausted")
    assert "Retain" in stuck.status.conditions[0].message


def test_deletion_that_is_refused_is_not_tried_again() -> None:
    refused = an_end("Failed", action=DELETION, reason="FolderNotOurs", retryable=False)
    decision = decided(going(PUBLISHED.model_copy(update={"last_run": refused})))
    assert conditions_of(decision)["Stalled"] == ("True", "RunRefused")


def test_paused_resource_stays() -> None:
    paused = {ANNOTATION_PAUSED: "true"}
    observed = an_output(PUBLISHED, paused, (FINALIZER,), is_deleting=True)
    assert not decided(observed).actions


def test_resource_without_the_finalizer_is_released_at_once() -> None:
    decision = decided(an_output(PUBLISHED, is_deleting=True, deletionPolicy="Delete"))
    assert not decision.actions
    assert current_of(decision) is None
    assert ready(decision) == ("False", "Deleting")


def test_index_whose_target_is_not_declared_any_more_is_released() -> None:
    status = SkippingIndexStatus(realised=DECLARATIONS, last_run=an_end())
    observed = an_index(status, finalizers=(FINALIZER,), is_deleting=True, deletionPolicy="Delete")
    assert is_released(decide(replace(observed, bundle=None), SETTINGS))


def test_index_over_a_path_is_deleted_without_any_other_declaration() -> None:
    status = SkippingIndexStatus(
        realised=DECLARATIONS,
        last_run=an_end(),
        current_run=a_run("Running", action=DELETION),
        state=IndexState.ACTIVE,
    )
    target = {"path": {"uri": "/data", "format": "parquet"}}
    observed = an_index(
        status, finalizers=(FINALIZER,), is_deleting=True, target=target, deletionPolicy="Delete"
    )
    running = an_application(ApplicationState.RUNNING, action=DELETION)
    runs = replace(observed.runs, applications=(running,))
    decision = decide(replace(observed, bundle=None, runs=runs), SETTINGS)
    assert decision.status.state is IndexState.DELETING


LAST = an_end().id


def run(age: int, ended_well: bool = True, name: str = "") -> Application:
    state = ApplicationState.COMPLETED if ended_well else ApplicationState.FAILED
    started = parse_instant(at(-3600 * age))
    return an_application(state, name or f"run-{age}", started_at=started, uid=f"uid-{age}")


def with_runs(*applications: Application, **settings: Any) -> ObservedOutput:
    status = OutputDatasetStatus(realised=DECLARATIONS, last_run=an_end())
    maps = [
        OwnedConfigMap(f"{each.name}-{role}", f"{role}-of-{each.name}", each.name, role)
        for each in applications
        for role in ("bundle", "report")
    ]
    observed = an_output(status, **settings)
    return observing(observed, applications=applications, config_maps=tuple(maps))


def deleted(observed: ObservedOutput) -> set[str]:
    """Names of the applications that are deleted; their ConfigMaps must go too."""
    actions = [a for a in decide(observed, SETTINGS).actions if isinstance(a, Delete)]
    runs = {action.name for action in actions if action.resource.kind == "SparkApplication"}
    maps = {action.name for action in actions if action.resource.kind == "ConfigMap"}
    assert maps == {f"{name}-{role}" for name in runs for role in ("bundle", "report")}
    return runs


def test_the_newest_of_each_kind_are_kept() -> None:
    runs = [run(age, ended_well=age % 2 == 0) for age in range(1, 9)]
    limits = {"successful": 2, "failed": 1}
    assert deleted(with_runs(*runs, historyLimit=limits)) == {
        "run-3", "run-5", "run-6", "run-7", "run-8",
    }  # fmt: skip


@pytest.mark.parametrize("limit", [0, 1])
def test_last_run_is_kept_whatever_the_limit(limit: int) -> None:
    limits = {"successful": limit, "failed": limit}
    observed = with_runs(run(1, name=LAST), run(2), historyLimit=limits)
    assert deleted(observed) == {"run-2"}


def test_run_that_its_report_calls_failed_counts_as_failed() -> None:
    observed = with_runs(run(1), historyLimit={"successful": 0, "failed": 1})
    assert deleted(observed) == {"run-1"}
    reported = observing(observed, reports={"run-1": a_report("FAILED", "run-1")})
    assert deleted(reported) == set()


def test_nothing_of_a_run_in_flight_is_deleted() -> None:
    flying = an_application(ApplicationState.RUNNING, "foreign", started_at=1)
    observed = with_runs(flying, historyLimit={"successful": 0, "failed": 0})
    assert deleted(observed) == set()


def test_what_is_left_of_runs_whose_application_is_gone_is_history_too() -> None:
    left = OwnedConfigMap("orphan-bundle", "1", "orphan", "bundle")
    plan = OwnedConfigMap("wide-plan", "2", "", "plan")
    observed = observing(with_runs(), config_maps=(left,))
    (action,) = decide(observed, SETTINGS).actions
    assert isinstance(action, Delete)
    assert action.name == "orphan-bundle"
    kept = observing(observed, config_maps=(left,), reports={"orphan": a_report(run="orphan")})
    assert not decide(kept, SETTINGS).actions
    assert plan.run == ""


def test_nothing_is_cleared_while_a_run_is_being_created() -> None:
    status = OutputDatasetStatus(
        realised="before", last_run=an_end(), current_run=a_run("Submitting")
    )
    observed = observing(an_output(status), applications=(run(30),), available=frozenset())
    assert [type(a) for a in decide(observed, SETTINGS).actions] == []
