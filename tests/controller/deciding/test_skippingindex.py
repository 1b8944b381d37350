"""The state of an index follows its runs; queries use what was there until a build ends well."""

from dataclasses import replace
from typing import Any

import pytest
from support.declared.declarations import Raw, document, files, key, parsed, relationship
from support.operator.observations import (
    DECLARATIONS,
    NOW,
    RUN,
    SETTINGS,
    UID,
    a_report,
    a_run,
    an_application,
    an_end,
    an_index,
    at,
    conditions_of,
    ready,
)

from snaploom.models.datasource import LastSeen, UsedBy
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentRun, LastRun
from snaploom.models.skippingindex import IndexedFiles, IndexState, SkippingIndexStatus
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.readiness import GRACE_SECONDS, RETRY_AFTER_CRASH
from snaploom_operator.decision import (
    Decision,
    ObservedIndex,
    ObservedResource,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.objects import Application, ApplicationState, FoundReport, Ref, later

FACTS = {
    "state": "active",
    "files": {"indexed": 7, "stale": 0, "missing": 0},
    "bytes": 100,
    "lastRefreshed": at(-3),
}


def status(
    last: LastRun | None = None, current: CurrentRun | None = None, **changes: Any
) -> SkippingIndexStatus:
    built = SkippingIndexStatus(
        state=IndexState.ACTIVE,
        files=IndexedFiles(indexed=7, stale=0, missing=0),
        last_refreshed=at(-50),
        realised=DECLARATIONS,
        last_run=last or an_end(),
        current_run=current,
    )
    return built.model_copy(update=changes)


def decided(
    state: SkippingIndexStatus | None,
    application: Application | None = None,
    report: FoundReport | None = None,
    **spec: Any,
) -> Decision:
    observed = an_index(state, **spec)
    runs = replace(
        observed.runs,
        applications=(application,) if application is not None else (),
        reports={RUN: report} if report is not None else {},
    )
    return decide(replace(observed, runs=runs), SETTINGS)


def state_of(decision: Decision) -> IndexState | None:
    return decision.status.state


RUNNING = an_application(ApplicationState.RUNNING)
FLYING = a_run("Running")
NOT_BUILT = status(None, FLYING, state=IndexState.EMPTY, files=None, last_refreshed=None,
                   realised=None, last_run=None)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "report", "state"),
    [
        pytest.param(NOT_BUILT, None, IndexState.CREATING, id="first build"),
        pytest.param(status(None, FLYING), None, IndexState.REFRESHING, id="refresh"),
        pytest.param(
            status(None, FLYING, realised="others"), None, IndexState.UPDATING, id="settings"
        ),
        pytest.param(
            status(an_end("Failed"), FLYING), None, IndexState.RECOVERING, id="after a failure"
        ),
        pytest.param(
            status(None, FLYING), a_report("RUNNING", index=FACTS | {"state": "vacuuming"}),
            IndexState.VACUUMING, id="as the job reports",
        ),
    ],
)  # fmt: skip
def test_state_shows_what_the_current_run_does(before, report, state):
    assert state_of(decided(before, RUNNING, report)) is state


def test_index_is_empty_until_its_first_run_is_at_work() -> None:
    decision = decided(None)
    assert state_of(decision) is IndexState.EMPTY
    assert ready(decision) == ("False", "RunSubmitted")
    assert conditions_of(decision)["IndexFresh"] == ("False", "NeverBuilt")


def test_built_index_is_active_with_its_counts() -> None:
    done = an_application(ApplicationState.COMPLETED)
    decision = decided(NOT_BUILT, done, a_report(index=FACTS))
    after = decision.status
    assert (after.state, after.bytes) == (IndexState.ACTIVE, 100)
    assert after.files == IndexedFiles(indexed=7, stale=0, missing=0)
    assert after.last_refreshed == at(-3)
    assert ready(decision) == ("True", "IndexActive")
    assert conditions_of(decision)["IndexFresh"] == ("True", "Fresh")


@pytest.mark.parametrize(
    ("done", "work"),
    [
        pytest.param(["built: 7 files"], "built: 7 files", id="work"),
        pytest.param([], "the index was up to date", id="nothing to do"),
    ],
)
def test_event_of_a_run_reports_what_it_did_to_the_index(done: list[str], work: str) -> None:
    ended = an_application(ApplicationState.COMPLETED)
    decision = decided(NOT_BUILT, ended, a_report(index=FACTS | {"done": done}))
    assert [note.message for note in decision.notes] == [f"run {RUN} succeeded: {work}"]


def test_failed_refresh_leaves_the_index_ready() -> None:
    failed = an_application(ApplicationState.FAILED)
    report = a_report("FAILED", reason="IndexBusy", retryable=False, message="busy")
    decision = decided(status(None, FLYING), failed, report)
    assert state_of(decision) is IndexState.FAILED
    assert ready(decision) == ("True", "RunRefused")


def test_failed_first_build_is_not_ready() -> None:
    failed = an_application(ApplicationState.FAILED)
    report = a_report("FAILED", reason="TargetNotIndexable", retryable=False)
    decision = decided(NOT_BUILT, failed, report)
    assert state_of(decision) is IndexState.FAILED
    assert conditions_of(decision)["Stalled"] == ("True", "RunRefused")


def test_index_that_is_not_enabled_is_kept_and_reported() -> None:
    decision = decided(status(), enabled=False)
    assert ready(decision) == ("True", "Disabled")


@pytest.mark.parametrize(
    ("files", "is_overdue", "fresh"),
    [
        pytest.param((7, 0, 0), False, ("True", "Fresh"), id="covers its target"),
        pytest.param((7, 1, 0), False, ("False", "Stale"), id="files changed"),
        pytest.param((7, 0, 1), False, ("False", "Stale"), id="files came"),
        pytest.param((7, 0, 0), True, ("False", "Stale"), id="the output published"),
    ],
)
def test_index_is_fresh_while_it_covers_its_target(files, is_overdue, fresh):
    indexed, stale, missing = files
    counts = IndexedFiles(indexed=indexed, stale=stale, missing=missing)
    observed: ObservedIndex = an_index(status(files=counts))
    decision = decide(replace(observed, is_overdue=is_overdue), SETTINGS)
    assert conditions_of(decision)["IndexFresh"] == fresh
    assert ready(decision) == ("True", "IndexActive")


def test_age_limit_counts_from_the_last_refresh() -> None:
    freshness = {"maxAge": {"minute": 1}}
    assert ready(decided(status(), freshness=freshness)) == ("True", "IndexActive")
    late = decided(status(last_refreshed=at(-61)), freshness=freshness)
    assert ready(late) == ("False", "Stale")


@pytest.mark.parametrize(("trigger", "is_run"), [("ON_PUBLISH", True), ("MANUAL", False)])
def test_an_index_follows_the_output_only_when_it_is_to(trigger: str, is_run: bool) -> None:
    observed = an_index(status(), refresh={"mode": "AUTO", "trigger": trigger})
    decision = decide(replace(observed, upstream="a publication"), SETTINGS).status
    assert (decision.current_run is not None) is is_run


SELECTORS = [{"coordinateIncludeRegex": "a"}]
RESOURCES = [
    pytest.param(files("a"), id="DataSource"),
    pytest.param(relationship("r", (["a", "b"], [key("id")])), id="DataRelationship"),
    pytest.param(
        document("MetadataApplicator", "m", {"fieldSelectors": SELECTORS, "metadata": {}}),
        id="MetadataApplicator",
    ),
    pytest.param(
        document("FieldTransformer", "t", {"transformers": [{"drop": {}, "selectors": SELECTORS}]}),
        id="FieldTransformer",
    ),
]
WRONG = Finding(
    code="SL131", severity=Severity.ERROR, resource="x", path="spec.a", message="bad", hint="repair"
)


def seen(raw: Raw, *findings: Finding) -> ObservedResource:
    raw = raw | {"metadata": raw["metadata"] | {"uid": UID, "generation": 4}}
    used_by = UsedBy(count=2, names=("OutputDataset/a", "OutputDataset/b"))
    (resource,) = parsed([raw])
    return ObservedResource(now=NOW, resource=resource, findings=findings, used_by=used_by)


@pytest.mark.parametrize("raw", RESOURCES)
def test_valid_declarations_are_ready_and_list_their_users(raw: Raw) -> None:
    decision = decide(seen(raw), SETTINGS)
    assert conditions_of(decision) == {"Ready": ("True", "Valid"), "Validated": ("True", "Valid")}
    assert decision.status.observed_generation == 4
    assert decision.status.dump()["usedBy"] == {
        "count": 2,
        "names": ["OutputDataset/a", "OutputDataset/b"],
    }
    assert not decision.notes


@pytest.mark.parametrize("raw", RESOURCES)
def test_wrong_declarations_stall_with_the_fix(raw: Raw) -> None:
    decision = decide(seen(raw, WRONG), SETTINGS)
    assert conditions_of(decision) == {
        "Ready": ("False", "Invalid"),
        "Stalled": ("True", "Invalid"),
        "Validated": ("False", "Invalid"),
    }
    assert decision.status.conditions[0].message == "spec.a: bad; repair"
    assert [note.reason for note in decision.notes] == ["Invalid"]


def test_missing_reference_stalls_only_when_it_does_not_arrive() -> None:
    missing = WRONG.model_copy(update={"code": "SL130"})
    observed = seen(relationship("r", (["a", "b"], [key("id")])), missing)
    first = decide(observed, SETTINGS)
    assert conditions_of(first)["Reconciling"] == ("True", "ReferenceMissing")
    assert (first.notes, first.requeue_after) == ((), GRACE_SECONDS)
    kept = observed.resource.model_copy(update={"status": first.status})
    second = decide(replace(observed, resource=kept, now=later(NOW, GRACE_SECONDS)), SETTINGS)
    assert conditions_of(second)["Stalled"] == ("True", "ReferenceMissing")
    assert [note.reason for note in second.notes] == ["ReferenceMissing"]


def test_source_shows_what_the_last_run_saw_and_keeps_it() -> None:
    look = LastSeen(run="ods-wide-1", at="2026-01-01T00:00:00Z", snapshots=3)
    observed = replace(seen(files("a")), last_seen=look)
    status = decide(observed, SETTINGS).status
    assert status.last_seen == look
    kept = replace(observed, resource=observed.resource.model_copy(update={"status": status}))
    assert decide(replace(kept, last_seen=None), SETTINGS).status == status


def unparsable(**changes: object) -> Unparsable:
    ref = Ref("OutputDataset", "shop", "wide")
    status = OutputDatasetStatus(snapshot_count=3)
    return replace(Unparsable(NOW, ref, UID, 9, (WRONG,), status), **changes)  # type: ignore[arg-type]


def test_what_cannot_be_parsed_keeps_the_rest_of_its_status() -> None:
    decision = decide(unparsable(), SETTINGS)
    assert ready(decision) == ("False", "Invalid")
    assert conditions_of(decision)["Validated"] == ("False", "Invalid")
    status = decision.status
    assert (status.snapshot_count, status.observed_generation) == (3, 9)
    assert not decision.actions


def test_what_cannot_be_parsed_does_not_stay_for_ever() -> None:
    decision = decide(unparsable(is_deleting=True, has_finalizer=True), SETTINGS)
    assert decision.actions == (RemoveFinalizer(),)
    assert decision.notes[-1].reason == "DataLeft"


def test_fault_of_our_own_becomes_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    broken = replace(seen(files("a")), findings=None)  # type: ignore[arg-type]
    decision = decide(broken, SETTINGS)
    assert conditions_of(decision)["Stalled"] == ("True", "InternalError")
    assert decision.requeue_after == RETRY_AFTER_CRASH
    assert "decision failed" in caplog.text
