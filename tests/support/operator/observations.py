"""Sound inputs of decisions, to be changed in one place."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support.declared.declarations import Raw, document, model, output, parsed

from snaploom.models.common import EpochNanos, format_instant, parse_instant
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.report import Report
from snaploom.models.run import CurrentPhase, CurrentRun, LastRun, RunAction, Submitter, Trigger
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom_operator.conditions import ConditionType
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import Decision, ObservedIndex, ObservedOutput
from snaploom_operator.objects import Application, ApplicationState, DriverPod, FoundReport
from snaploom_operator.settings import OperatorSettings


def flying(
    run: CurrentRun,
    application: Application | None = None,
    report: FoundReport | None = None,
    pod: DriverPod | None = None,
    **settings: Any,
) -> ObservedOutput:
    observed = an_output(OutputDatasetStatus(current_run=run), **settings)
    return observing(
        observed,
        applications=(application,) if application is not None else (),
        reports={report.run: report} if report is not None else {},
        driver_pods={RUN: pod} if pod is not None else {},
    )


def decided(observed: ObservedOutput) -> Decision:
    return decide(observed, SETTINGS)


def phase_of(observed: ObservedOutput) -> CurrentPhase | None:
    current = current_of(decided(observed))
    return current.phase if current is not None else None


SETTINGS = DecideSettings.of(OperatorSettings())
NOW = parse_instant("2026-01-10T12:00:30Z")
UID = "11111111-2222-3333-4444-555555555555"
RUN = "ods-wide-00000000"
DECLARATIONS = "declarations-1"


def at(seconds: float) -> str:
    """A time some seconds from now; before it when negative."""
    return format_instant(EpochNanos(NOW + round(seconds * 1_000_000_000)))


def an_output(
    status: OutputDatasetStatus | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    is_deleting: bool = False,
    **run: Any,
) -> ObservedOutput:
    """An output that is valid, and has never run; keyword arguments are `spec.run`."""
    resource = _stored(output(run=run), annotations, finalizers, is_deleting)
    resource = resource.model_copy(update={"status": status})
    bundle = bundle_for("OutputDataset", "wide", [*_near(model()[:-1]), resource])
    return ObservedOutput(
        now=NOW,
        resource=resource,
        findings=(),
        bundle=bundle,
        plan=plan_offline(bundle),
        declarations=DECLARATIONS,
    )


def an_index(
    status: SkippingIndexStatus | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    is_deleting: bool = False,
    refresh: Raw | None = None,
    enabled: bool = True,
    target: Raw | None = None,
    **run: Any,
) -> ObservedIndex:
    """An index over the files of an output."""
    spec = {
        "target": target or {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"parquet": {"location": "/indexes"}},
        "enabled": enabled,
        "refresh": refresh or {},
        "run": run,
    }
    raw = document("SkippingIndex", "narrow", spec)
    resource = _stored(raw, annotations, finalizers, is_deleting)
    resource = resource.model_copy(update={"status": status})
    bundle = bundle_for("SkippingIndex", "narrow", [*_near([output()]), resource])
    return ObservedIndex(
        now=NOW, resource=resource, findings=(), bundle=bundle, declarations=DECLARATIONS
    )


def observing(observed: ObservedOutput, **runs: Any) -> ObservedOutput:
    """The same with other runs in the cluster."""
    return replace(observed, runs=replace(observed.runs, **runs))


def with_status(observed: ObservedOutput, **changes: Any) -> ObservedOutput:
    before = observed.resource.status or OutputDatasetStatus()
    status = before.model_copy(update=changes)
    return replace(observed, resource=observed.resource.model_copy(update={"status": status}))


def a_run(phase: str = "Submitted", since: float = -10, **changes: Any) -> CurrentRun:
    run = CurrentRun.parse(
        {"name": RUN, "id": RUN, "phase": phase, "since": at(since), "startedAt": at(since)}
    )
    trigger = Trigger(declarations=DECLARATIONS)
    return run.model_copy(update={"trigger": trigger, "uid": "application-1", **changes})


def an_end(phase: str = "Succeeded", ended: float = -100, **changes: Any) -> LastRun:
    run = LastRun.parse(
        {
            "id": "ods-wide-last",
            "phase": phase,
            "startedAt": at(ended - 60),
            "finishedAt": at(ended),
        }
    )
    trigger = Trigger(declarations=DECLARATIONS)
    failed = {"reason": "SourceNotReadable", "retryable": True} if phase != "Succeeded" else {}
    return run.model_copy(update={"trigger": trigger, **failed, **changes})


def an_application(
    state: ApplicationState = ApplicationState.SUBMITTED, name: str = RUN, **changes: Any
) -> Application:
    application = Application(
        submitter=Submitter.SPARK_OPERATOR,
        name=name,
        uid="application-1",
        owner_uid=UID,
        state=state,
        message="",
        action=RunAction.RUN,
        attempt=0,
        trigger=Trigger(declarations=DECLARATIONS),
        started_at=parse_instant(at(-10)),
        is_deleting=False,
    )
    return replace(application, **changes)


def a_report(phase: str = "SUCCEEDED", run: str = RUN, **changes: Any) -> FoundReport:
    """The report of a run that published one snapshot."""
    latest = {
        "time": "2026-01-10T00:00:00Z",
        "publishedAt": at(-5),
        "partition": "data/snapshot_epoch=1",
        "rows": 3,
        "files": 1,
        "bytes": 100,
    }
    raw = {
        "output": "wide",
        "uid": UID,
        "runId": run,
        "phase": phase,
        "startedAt": at(-10),
        "finishedAt": at(-1),
        "newest": latest,
        "published": [{"time": "2026-01-10T00:00:00Z", "rows": 3}],
        "snapshotCount": 1,
        "manifest": {"uri": "/out/wide/", "sequence": 1},
    }
    return FoundReport(run, Report.parse(raw | changes))


def conditions_of(decision: Decision) -> dict[str, tuple[str, str]]:
    """Status and reason of every condition."""
    return {c.type: (c.status.value, c.reason) for c in decision.status.conditions}


def ready(decision: Decision) -> tuple[str, str]:
    return conditions_of(decision)[ConditionType.READY]


def current_of(decision: Decision) -> CurrentRun | None:
    status = decision.status
    assert isinstance(status, OutputDatasetStatus | SkippingIndexStatus)
    return status.current_run


def last_of(decision: Decision) -> LastRun | None:
    status = decision.status
    assert isinstance(status, OutputDatasetStatus | SkippingIndexStatus)
    return status.last_run


def _near(raws: list[Raw]) -> list[Any]:
    found = parsed(raws)
    return [
        each.model_copy(update={"metadata": each.metadata.model_copy(update={"namespace": "shop"})})
        for each in found
    ]


def _stored(
    raw: Raw,
    annotations: Mapping[str, str] | None,
    finalizers: tuple[str, ...],
    is_deleting: bool,
) -> Any:
    raw["metadata"] |= {
        "namespace": "shop",
        "uid": UID,
        "generation": 3,
        "annotations": dict(annotations or {}),
        "finalizers": list(finalizers),
    }
    if is_deleting:
        raw["metadata"]["deletionTimestamp"] = at(-1)
    return parsed([raw])[0]
