"""The start of a run: each step is written before it is taken, once, and under one name."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.sources import a_source
from support.operator.observations import (
    RUN,
    UID,
    a_run,
    an_application,
    an_output,
    conditions_of,
    current_of,
    decided,
    flying,
    observing,
    phase_of,
    ready,
)

from snaploom.models.run import CurrentPhase, RunAction, Trigger
from snaploom.plan.bundles import secret_keys
from snaploom.sources.databases.declared import ALLOW_URL_VARIABLE
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runsteps import LONGEST_RUN, run_name
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import (
    Create,
    Delete,
    ObservedOutput,
    OwnedConfigMap,
    Queue,
    Refusal,
)
from snaploom_operator.objects import ApplicationState
from snaploom_operator.settings import OperatorSettings

State = ApplicationState


def test_run_with_a_slot_is_written_down_as_submitting_before_anything_is_created() -> None:
    first = decided(an_output())
    assert not first.actions
    submitting = current_of(first)
    assert submitting.phase is CurrentPhase.SUBMITTING
    assert [type(action) for action in decided(flying(submitting)).actions] == [Create, Create]


def test_waiting_run_that_gets_a_slot_is_written_down_as_submitting_first() -> None:
    waiting = a_run("Queued")
    decision = decided(flying(waiting))
    submitting = current_of(decision)
    assert not decision.actions
    assert (submitting.phase, submitting.started_at) == (
        CurrentPhase.SUBMITTING,
        waiting.started_at,
    )


def test_new_run_without_a_slot_is_written_down_with_its_place_in_the_queue() -> None:
    queue = Queue(has_slot=False, position=0, waiting=5, limit=20)
    current = current_of(decided(observing(an_output(), queue=queue)))
    assert current.phase is CurrentPhase.QUEUED
    assert current.waiting_for == (
        "its turn: place 6 of 6 in the queue; 20 runs may be in flight at once"
    )


def test_submitting_run_gets_its_bundle_and_then_its_application() -> None:
    actions = decided(flying(a_run("Submitting"))).actions
    assert [type(action) for action in actions] == [Create, Create]
    bundle, application = actions
    assert isinstance(bundle, Create)
    assert isinstance(application, Create)
    assert bundle.resource.kind == "ConfigMap"
    assert application.resource.kind == "SparkApplication"
    for manifest in (bundle.manifest, application.manifest):
        metadata = manifest["metadata"]
        assert metadata["namespace"] == "shop"
        assert metadata["labels"]["snaploom.io/owner-uid"] == UID
        assert metadata["labels"]["snaploom.io/run"] == RUN


def test_driver_gets_the_secrets_that_sources_name() -> None:
    observed = flying(a_run("Submitting"))
    table = {
        "driver": "POSTGRESQL", "host": "db", "database": "d", "tableReference": "t",
        "credentials": {"fromSecret": {"name": "shop-db"}}, "snapshot": {"fromReadTime": {}},
    }  # fmt: skip
    sources = (*observed.bundle.data_sources[1:], a_source({"jdbc": table}, "more"))
    bundle = observed.bundle.model_copy(update={"data_sources": sources})
    created = [a for a in decided(replace(observed, bundle=bundle)).actions if type(a) is Create]
    written = str([one.manifest for one in created])
    for key in secret_keys(bundle):
        assert written.count(key.variable) == 1
    assert len(secret_keys(bundle)) == 2


def test_run_without_a_slot_waits_for_its_turn_by_name() -> None:
    queue = Queue(has_slot=False, position=2, waiting=5, limit=20)
    decision = decided(observing(flying(a_run("Queued")), queue=queue))
    current = current_of(decision)
    assert current.phase is CurrentPhase.QUEUED
    assert current.waiting_for == (
        "its turn: place 2 of 5 in the queue; 20 runs may be in flight at once"
    )
    assert ready(decision) == ("False", "RunQueued")
    assert decision.requeue_after == pytest.approx(30)


def test_waiting_run_keeps_its_place_when_what_it_is_for_changes() -> None:
    queue = Queue(has_slot=False, position=2, waiting=5, limit=20)
    before = a_run("Queued", since=-500)
    current = current_of(decided(observing(flying(before), queue=queue)))
    changed = replace(observing(flying(before), queue=queue), declarations="others")
    after = current_of(decided(changed))
    assert after.trigger.declarations == "others"
    assert after.name != current.name
    assert (after.since, after.started_at) == (before.since, before.started_at)


def test_application_that_is_seen_is_the_runs_with_its_uid() -> None:
    observed = flying(a_run("Submitting", uid=None), an_application(State.NEW, uid="abc"))
    current = current_of(decided(observed))
    assert (current.phase, current.uid) == (CurrentPhase.SUBMITTED, "abc")
    assert current.waiting_for.endswith("to pick up its application")


def test_run_is_for_what_its_application_was_created_for() -> None:
    created_for = Trigger(declarations="earlier")
    observed = flying(a_run("Submitting"), an_application(trigger=created_for))
    current = current_of(decided(observed))
    assert current.trigger == created_for


def test_declarations_that_change_before_the_application_is_created_go_into_it() -> None:
    bundle = OwnedConfigMap(f"{RUN}-bundle", "old", RUN, "bundle")
    observed = observing(flying(a_run("Submitting")), config_maps=(bundle,))
    decision = decided(replace(observed, declarations="others"))
    (deletion,) = decision.actions
    assert isinstance(deletion, Delete)
    assert (deletion.name, deletion.uid) == (bundle.name, "old")
    current = current_of(decision)
    assert (current.name, current.trigger.declarations) == (RUN, "others")


def test_refusal_of_the_api_server_is_what_the_run_waits_for() -> None:
    observed = flying(a_run("Submitting"))
    refusal = Refusal("ObjectRefused", "exceeded quota: pods")
    decision = decided(replace(observed, refusal=refusal))
    current = current_of(decision)
    assert current.waiting_for == "the API server to take it: exceeded quota: pods"
    assert len(decision.actions) == 2
    assert ready(decision) == ("False", "RunSubmitted")


def test_name_of_another_owner_stalls() -> None:
    refusal = Refusal("NameTaken", "ConfigMap/x belongs to somebody else")
    decision = decided(replace(flying(a_run("Submitting")), refusal=refusal))
    assert conditions_of(decision)["Stalled"] == ("True", "NameTaken")


def test_names_of_which_something_is_left_are_not_given_again() -> None:
    first = current_of(decided(an_output()))
    left = OwnedConfigMap(f"{first.name}-report", "old", first.name, "report")
    second = current_of(decided(observing(an_output(), config_maps=(left,))))
    assert second.name != first.name


def test_run_that_cannot_be_created_any_more_is_given_up_after_a_minute() -> None:
    def observed(since: float) -> ObservedOutput:
        run = a_run("Submitting", since=since)
        return observing(flying(run), is_namespace_terminating=True)

    assert phase_of(observed(-10)) is CurrentPhase.SUBMITTING
    assert not decided(observed(-10)).actions
    assert phase_of(observed(-61)) is None


@pytest.mark.parametrize("is_allowed", [False, True])
def test_driver_gets_whether_urls_are_allowed(is_allowed: bool) -> None:
    settings = DecideSettings.of(OperatorSettings(allow_jdbc_url=is_allowed))
    actions = decide(flying(a_run("Submitting")), settings).actions
    written = str([action.manifest for action in actions if isinstance(action, Create)])
    variable = {"name": ALLOW_URL_VARIABLE, "value": "true"}
    assert (str(variable) in written) is is_allowed


LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
TRIGGER = Trigger(declarations="a")


@given(st.sampled_from(["OutputDataset", "SkippingIndex"]), st.text(min_size=1), st.text())
def test_every_name_is_a_short_label(kind: str, name: str, uid: str) -> None:
    found = run_name(kind, name, uid, TRIGGER, 0, RunAction.RUN)
    assert len(found) <= LONGEST_RUN
    assert LABEL.fullmatch(found)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        pytest.param("wide", "ods-wide-", id="as it is"),
        pytest.param("a.b_C", "ods-a-b-c-", id="cleaned"),
        pytest.param("x" * 253, "ods-" + "x" * 37 + "-", id="cut"),
        pytest.param("...", "ods-", id="nothing left"),
    ],
)
def test_name_begins_with_the_resources(name: str, begins: str) -> None:
    found = run_name("OutputDataset", name, "1", TRIGGER, 0, RunAction.RUN)
    assert re.fullmatch(re.escape(begins) + "[0-9a-f]{8}", found)


def test_same_run_has_the_same_name_and_any_other_another() -> None:
    def named(
        uid: str = "1", trigger: Trigger = TRIGGER, attempt: int = 0,
        action: RunAction = RunAction.RUN, before: str = "", taken: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        return run_name("OutputDataset", "wide", uid, trigger, attempt, action, before, taken)

    names = [
        named(),
        named(uid="2"),
        named(trigger=Trigger(declarations="b")),
        named(attempt=1),
        named(action=RunAction.DELETE),
        named(before="ods-wide-1"),
        named(taken=(named(),)),
    ]
    assert len(set(names)) == len(names)
    assert named() == named()
    assert names[-1] == named(taken=(named(),))
