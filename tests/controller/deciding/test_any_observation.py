"""Whatever is observed: one Ready reason, a small status, nothing foreign touched, and an end."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import model_data
from support.operator.observations import NOW, RUN, SETTINGS, UID, an_index, an_output, at
from support.runner.quick import examples

from snaploom.models.base import ApiModel
from snaploom.models.common import ConditionStatus, EpochNanos
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.report import Report
from snaploom.models.run import (
    CurrentPhase,
    CurrentRun,
    LastPhase,
    LastRun,
    RunAction,
    RunSettings,
    Submitter,
    Trigger,
)
from snaploom.models.skippingindex import Refresh, SkippingIndexStatus
from snaploom_operator.conditions import MOST_BYTES, ConditionType, Reason
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import (
    Action,
    AddFinalizer,
    Create,
    Decision,
    Delete,
    Ensure,
    ObservedIndex,
    ObservedOutput,
    ObservedRuns,
    OwnedConfigMap,
    Queue,
    Refusal,
    RemoveFinalizer,
)
from snaploom_operator.objects import (
    ANNOTATION_PAUSED,
    ANNOTATION_RUN,
    FINALIZER,
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
    JsonObject,
)
from snaploom_operator.settings import OperatorSettings, QueueScheduler
from snaploom_operator.submit.applications import FORMS

M = TypeVar("M", bound=ApiModel)
NAMES = [RUN, "ods-wide-11111111", "ods-wide-22222222", "ods-wide-last"]
names = st.sampled_from(NAMES)
seconds = st.sampled_from([-200_000, -4_000, -601, -61, -60, -10, 0, 5, 90_000])
times = st.one_of(seconds.map(at), st.just("yesterday"), st.just("0001-01-01T00:00:00Z"))
texts = st.sampled_from(["", "a", "declarations-1", "b" * 2_000, "é" * 300, "\u0000" * 400])
hashes = st.sampled_from(["", "declarations-1", "declarations-2"])
attempts = st.integers(0, 120)


def models(model: type[M], *leave_out: str) -> st.SearchStrategy[M]:
    return model_data(model, leave_out=leave_out).map(model.parse)


triggers = st.builds(
    Trigger,
    declarations=hashes,
    upstream=hashes,
    token=st.sampled_from(["", "t", "u"]),
    scheduled=st.none() | times,
)
current_runs = st.builds(
    CurrentRun.model_construct,
    name=names, id=names, action=st.sampled_from(RunAction), phase=st.sampled_from(CurrentPhase),
    since=times, started_at=times, attempt=attempts, trigger=triggers,
    uid=st.sampled_from([None, "u1", "u2"]),
    waiting_for=st.none() | texts.map(lambda text: text[:1_000]), progress=st.none(),
    stopping=st.sampled_from([None, "StartTimeout", "RunStopped", "Deleting", "anything"]),
).map(lambda run: run.model_copy(update={"id": run.name}))  # fmt: skip
last_runs = st.builds(
    LastRun.model_construct,
    id=names, action=st.sampled_from(RunAction), phase=st.sampled_from(LastPhase),
    reason=st.sampled_from(["", "Invalid", "SourceNotReadable"]), retryable=st.booleans(),
    attempt=attempts, trigger=triggers, started_at=times, finished_at=st.none() | times,
    published=st.just(0), skipped=st.just(()), failed=st.just(()), message=texts,
)  # fmt: skip
applications = st.builds(
    Application,
    submitter=st.sampled_from(Submitter), name=names, uid=st.sampled_from(["u1", "u2"]),
    owner_uid=st.just(UID), state=st.sampled_from(ApplicationState),
    message=st.sampled_from(["", "driver pod already exists", "m" * 40_000]),
    action=st.sampled_from(RunAction), attempt=attempts, trigger=triggers,
    started_at=seconds.map(lambda n: EpochNanos(NOW + n * 1_000_000_000)),
    is_deleting=st.booleans(), is_suspended=st.booleans(), queue=st.sampled_from(["", "team-a"]),
)  # fmt: skip
pods = st.builds(
    DriverPod,
    name=names,
    run=names,
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    trouble=texts,
    unscheduled=st.sampled_from(["", "SchedulingGated", "SchedulingSkipped", "Unschedulable"]),
)
config_maps = st.builds(
    OwnedConfigMap,
    name=st.integers(0, 5).map(lambda n: f"map-{n}"),
    uid=st.just("u"),
    run=names,
    role=st.sampled_from(["bundle", "report", "plan"]),
)


UNREAD = ("snapshots", "seen", "session", "truncated", "toolVersion", "sparkVersion")
"""Fields of a report that no decision looks into, or only counts."""


def _report(run: str, found: Report | None, is_ours: bool) -> FoundReport:
    if found is None:
        return FoundReport(run, None, "cannot be read")
    known = {"uid": UID, "run_id": run} if is_ours else {}
    return FoundReport(run, found.model_copy(update=known))


reports = st.builds(_report, names, st.none() | models(Report, *UNREAD), st.booleans())
observed_runs = st.builds(
    lambda apps, found, maps, drivers, **rest: ObservedRuns(
        applications=tuple(apps),
        reports={report.run: report for report in found},
        config_maps=tuple(maps),
        driver_pods={pod.run: pod for pod in drivers},
        **rest,
    ),
    st.lists(applications, max_size=4, unique_by=lambda each: each.name),
    st.lists(reports, max_size=2),
    st.lists(config_maps, max_size=3, unique_by=lambda each: each.name),
    st.lists(pods, max_size=2),
    quota=st.dictionaries(names, texts, max_size=2),
    queue=st.builds(Queue, st.booleans(), st.just(1), st.just(2), st.just(3)),
    available=st.frozensets(st.sampled_from(Submitter)),
    is_namespace_terminating=st.booleans(),
)
findings = st.lists(
    st.builds(
        Finding,
        code=st.sampled_from(["SL113", "SL130", "SL301", "SL302", "SL176"]),
        severity=st.sampled_from(Severity),
        resource=st.just("OutputDataset/wide"),
        message=texts,
    ),
    max_size=3,
).map(tuple)
METADATA: dict[str, st.SearchStrategy[Any]] = {
    "finalizers": st.sampled_from([(), (FINALIZER,), ("other",)]),
    "deletion_timestamp": st.none() | times,
    "annotations": st.fixed_dictionaries(
        {}, optional={ANNOTATION_RUN: texts, ANNOTATION_PAUSED: st.just("true")}
    ),
}


@st.composite
def _common(draw: st.DrawFn, base: Any, status: type[ApiModel]) -> Any:
    """An observation whose declarations are sound, and nothing else has to be."""
    before = draw(st.none() | models(status, "currentRun", "lastRun", "realised"))
    if before is not None:
        ends = {"current_run": st.none() | current_runs, "last_run": st.none() | last_runs}
        ends["realised"] = st.none() | hashes
        before = before.model_copy(update={key: draw(value) for key, value in ends.items()})
    metadata = {key: draw(value) for key, value in METADATA.items()}
    spec = base.resource.spec.model_copy(update={"run": draw(models(RunSettings, "spark"))})
    resource = base.resource.model_copy(
        update={
            "status": before,
            "spec": spec,
            "metadata": base.resource.metadata.model_copy(update=metadata),
        }
    )
    is_known = draw(st.booleans())
    return replace(
        base,
        resource=resource,
        findings=draw(findings),
        faulty=draw(st.sampled_from([(), ("DataSource/a",)])),
        outdated=draw(st.sampled_from(["", "the API server drops spec.run"])),
        refusal=draw(st.none() | st.builds(Refusal, st.just("NameTaken"), texts)),
        runs=draw(observed_runs),
        bundle=base.bundle if is_known else None,
        declarations=draw(hashes) if is_known else "",
        upstream=draw(hashes),
        unpublished=draw(st.sampled_from([(), ("upstream",)])),
    )


def outputs() -> st.SearchStrategy[ObservedOutput]:
    return _common(an_output(), OutputDatasetStatus)


def indexes() -> st.SearchStrategy[ObservedIndex]:
    common = _common(an_index(), SkippingIndexStatus)
    return st.builds(_refreshing, common, models(Refresh), st.booleans())


def _refreshing(observed: ObservedIndex, refresh: Refresh, is_overdue: bool) -> ObservedIndex:
    spec = observed.resource.spec.model_copy(update={"refresh": refresh})
    resource = observed.resource.model_copy(update={"spec": spec})
    return replace(observed, resource=resource, is_overdue=is_overdue)


Observed = ObservedOutput | ObservedIndex
ANY: st.SearchStrategy[Observed] = st.one_of(outputs(), indexes())
SCHEDULERS = st.sampled_from([None, *QueueScheduler]).map(
    lambda scheduler: DecideSettings.of(OperatorSettings(queue_scheduler=scheduler))
)
MOST_PASSES = 12
REASONS = {reason.value for reason in Reason}


@pytest.fixture(autouse=True)
def _loud(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A fault of our own is a failure here."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(ANY, SCHEDULERS)
def test_there_is_always_one_ready_reason_and_a_small_valid_status(observed, known):
    decision = decide(observed, known)
    conditions = {condition.type: condition for condition in decision.status.conditions}
    assert len(conditions) == len(decision.status.conditions)
    ready = conditions[ConditionType.READY]
    assert Reason(ready.reason) is not Reason.INTERNAL_ERROR
    at_most = {ConditionType.RECONCILING, ConditionType.STALLED} & conditions.keys()
    assert len(at_most) <= (0 if ready.status is ConditionStatus.TRUE else 1)
    assert all(condition.reason in REASONS for condition in conditions.values())
    assert len(decision.status.dump_json().encode()) < MOST_BYTES
    assert type(decision.status).parse(decision.status.dump()) == decision.status
    assert decision.requeue_after is None or decision.requeue_after > 0
    assert all(note.reason in REASONS and note.message for note in decision.notes)


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(ANY, SCHEDULERS)
def test_actions_name_nothing_foreign(observed: Observed, operator: DecideSettings) -> None:
    known = {(each.name, each.uid) for each in observed.runs.applications}
    known |= {(each.name, each.uid) for each in observed.runs.config_maps}
    for action in decide(observed, operator).actions:
        if isinstance(action, Delete):
            assert (action.name, action.uid) in known
            assert action.namespace == "shop"
        elif isinstance(action, Create | Ensure):
            metadata = metadata_of(action.manifest)
            assert metadata["namespace"] == "shop"
            (owner,) = metadata["ownerReferences"]
            assert owner["uid"] == UID


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(ANY, SCHEDULERS)
def test_decisions_that_are_carried_out_come_to_an_end(observed, known):
    for _ in range(MOST_PASSES):
        decision = decide(observed, known)
        if not decision.actions and decision.status == observed.resource.status:
            return
        if RemoveFinalizer() in decision.actions and is_going(observed):
            return  # it is gone
        observed = carried_out(observed, decision)
    raise AssertionError(f"never settles: {decision}")


def is_going(observed: Observed) -> bool:
    return observed.resource.metadata.deletion_timestamp is not None


def carried_out(observed: Observed, decision: Decision) -> Observed:
    """What is observed after a decision, when nothing else happens."""
    resource = observed.resource.model_copy(update={"status": decision.status})
    observed = replace(observed, resource=resource)  # type: ignore[type-var]
    for action in decision.actions:
        observed = performed(observed, action)
    return observed


def performed(observed: Observed, action: Action) -> Observed:
    runs = observed.runs
    match action:
        case Delete():
            maps = tuple(each for each in runs.config_maps if each.name != action.name)
            apps = tuple(each for each in runs.applications if each.name != action.name)
            return replace(observed, runs=replace(runs, config_maps=maps, applications=apps))
        case AddFinalizer() | RemoveFinalizer():
            finalizers = (FINALIZER,) if isinstance(action, AddFinalizer) else ()
            metadata = observed.resource.metadata.model_copy(update={"finalizers": finalizers})
            resource = observed.resource.model_copy(update={"metadata": metadata})
            return replace(observed, resource=resource)  # type: ignore[type-var]
        case Create() | Ensure():
            return created(observed, action.manifest)


def created(observed: Observed, manifest: JsonObject) -> Observed:
    runs, metadata = observed.runs, metadata_of(manifest)
    labels = metadata["labels"]
    name = str(metadata["name"])
    if labels.get("snaploom.io/role") in ("bundle", "plan"):
        run, role = labels.get("snaploom.io/run", ""), labels["snaploom.io/role"]
        found = OwnedConfigMap(name, f"uid-of-{name}", run, role)
        maps = (*(each for each in runs.config_maps if each.name != name), found)
        return replace(observed, runs=replace(runs, config_maps=maps))
    stored = {**manifest, "metadata": {**metadata, "uid": f"uid-of-{name}"}}
    submitter = observed.resource.spec.run.submitter or SETTINGS.submitter
    application = FORMS[submitter].read(stored)
    assert application is not None
    return replace(observed, runs=replace(runs, applications=(application, *runs.applications)))


def metadata_of(manifest: JsonObject) -> dict[str, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return metadata
