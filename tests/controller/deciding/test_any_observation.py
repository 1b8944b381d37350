"""Whatever is observed: one Ready reason, a small status, nothing foreign touched, and an end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operator.anyobservation import indexes, outputs
from support.operator.observations import SETTINGS, UID
from support.runner.quick import examples

from snaploom.models.common import ConditionStatus
from snaploom_operator.conditions import MOST_BYTES, ConditionType, Reason
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import (
    Action,
    AddFinalizer,
    Create,
    Decision,
    Delete,
    Ensure,
    ObservedIndex,
    ObservedOutput,
    OwnedConfigMap,
    RemoveFinalizer,
)
from snaploom_operator.objects import FINALIZER, JsonObject
from snaploom_operator.submit.applications import FORMS

Observed = ObservedOutput | ObservedIndex
ANY: st.SearchStrategy[Observed] = st.one_of(outputs(), indexes())
MOST_PASSES = 12
REASONS = {reason.value for reason in Reason}


@pytest.fixture(autouse=True)
def _loud(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A fault of our own is a failure here."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(ANY)
def test_there_is_always_one_ready_reason_and_a_small_valid_status(observed: Observed) -> None:
    decision = decide(observed, SETTINGS)
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


@settings(max_examples=examples(60), deadline=None)
@given(ANY)
def test_actions_name_nothing_foreign(observed: Observed) -> None:
    known = {(each.name, each.uid) for each in observed.runs.applications}
    known |= {(each.name, each.uid) for each in observed.runs.config_maps}
    for action in decide(observed, SETTINGS).actions:
        if isinstance(action, Delete):
            assert (action.name, action.uid) in known
            assert action.namespace == "shop"
        elif isinstance(action, Create | Ensure):
            metadata = metadata_of(action.manifest)
            assert metadata["namespace"] == "shop"
            (owner,) = metadata["ownerReferences"]
            assert owner["uid"] == UID


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(ANY)
def test_decisions_that_are_carried_out_come_to_an_end(observed: Observed) -> None:
    for _ in range(MOST_PASSES):
        decision = decide(observed, SETTINGS)
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
