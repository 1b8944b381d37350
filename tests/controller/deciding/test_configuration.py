"""Sources, relationships, applicators and transformers: right or wrong, and used by whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.declared.declarations import Raw, document, files, key, parsed, relationship
from support.operator.observations import NOW, SETTINGS, UID, conditions_of, ready

from snaploom.models.datasource import DataSourceStatus, LastSeen, UsedBy
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom_operator.decide.decide import RETRY_AFTER_CRASH, decide
from snaploom_operator.decide.runview import GRACE_SECONDS
from snaploom_operator.decision import ObservedResource, RemoveFinalizer, Unparsable
from snaploom_operator.objects import Ref, later

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
    assert isinstance(status, DataSourceStatus)
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
    assert isinstance(status, OutputDatasetStatus)
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
