"""Of finished runs the newest stay, with their ConfigMaps; the last one always."""

from __future__ import annotations

from typing import Any

import pytest
from support.operator.observations import (
    DECLARATIONS,
    SETTINGS,
    a_report,
    a_run,
    an_application,
    an_end,
    an_output,
    at,
    observing,
)

from snaploom.models.common import parse_instant
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import Delete, ObservedOutput, OwnedConfigMap
from snaploom_operator.objects import Application, ApplicationState

LAST = an_end().id


def run(age: int, ended_well: bool = True, name: str = "") -> Application:
    """A finished run, so many hours old."""
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
