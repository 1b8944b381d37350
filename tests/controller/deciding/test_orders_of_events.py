"""Whatever happens in whatever order: one application at a time, one a run, each trigger once.

A cluster in miniature around one OutputDataset: it plays decisions and what happens to runs.

Nothing in it waits or is at work by itself. Events come from outside, in any order, and after each
one the resource is looked at until nothing more is to be done, as the controller does it. A crash
stops such a look after a number of writes; what was written stays.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operator.observations import NOW, SETTINGS, a_report, an_output
from support.runner.quick import examples

from snaploom.models.common import NANOS_PER_SECOND, ConditionStatus, EpochNanos, format_instant
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastPhase
from snaploom_operator.conditions import ConditionType
from snaploom_operator.decide.decide import decide
from snaploom_operator.decision import (
    AddFinalizer,
    Create,
    Decision,
    Delete,
    Ensure,
    ObservedOutput,
    ObservedRuns,
    OwnedConfigMap,
    Queue,
    RemoveFinalizer,
)
from snaploom_operator.objects import (
    ANNOTATION_RUN,
    FINALIZER,
    Application,
    ApplicationState,
    DriverPod,
    FoundReport,
)
from snaploom_operator.submit.applications import FORMS

MOST_PASSES = 40
"""Looks after one event until nothing changes; more of them never end."""


class Crashed(Exception):
    """The operator died."""


@dataclass
class Simulator:
    """One resource, its children and the clock."""

    run: dict[str, object] = field(default_factory=dict)
    now: EpochNanos = NOW
    declarations: str = "declarations-0"
    upstream: str = ""
    token: str = ""
    is_deleting: bool = False
    finalizers: tuple[str, ...] = ()
    has_slot: bool = True
    is_gone: bool = False
    status: OutputDatasetStatus | None = None
    applications: dict[str, Application] = field(default_factory=dict)
    config_maps: dict[str, OwnedConfigMap] = field(default_factory=dict)
    reports: dict[str, FoundReport] = field(default_factory=dict)
    pods: dict[str, DriverPod] = field(default_factory=dict)
    created: list[Application] = field(default_factory=list)
    """Every application that ever was, in the order of creation."""
    writes_until_crash: int | None = None
    sees_applications: bool = True
    """Whether what was created lately is seen; a watch can be behind."""
    _seen: dict[str, Application] = field(default_factory=dict)
    _uids: int = 0

    def observed(self) -> ObservedOutput:
        """What a decision is made from now."""
        if self.sees_applications:
            self._seen = dict(self.applications)
        else:
            self._seen = {n: a for n, a in self.applications.items() if n in self._seen}
        built = _built(json.dumps(self.run, sort_keys=True))
        metadata = {
            "annotations": {ANNOTATION_RUN: self.token} if self.token else {},
            "finalizers": self.finalizers,
            "deletion_timestamp": format_instant(self.now) if self.is_deleting else None,
        }
        changed = {
            "metadata": built.resource.metadata.model_copy(update=metadata),
            "status": self.status,
        }
        return replace(
            built,
            now=self.now,
            resource=built.resource.model_copy(update=changed),
            declarations=self.declarations,
            upstream=self.upstream,
            runs=ObservedRuns(
                applications=tuple(sorted(self._seen.values(), key=_age, reverse=True)),
                reports=dict(self.reports),
                config_maps=tuple(self.config_maps.values()),
                driver_pods=dict(self.pods),
                queue=Queue(self.has_slot, 1, 1, 1),
            ),
        )

    def settle(self) -> Decision:
        """Look until there is nothing to do; the last decision."""
        decision = decide(self.observed(), SETTINGS)
        for _ in range(MOST_PASSES):
            if self.is_gone or not self._apply(decision):
                return decision
            decision = decide(self.observed(), SETTINGS)
        if not self.sees_applications:
            return decision
        raise AssertionError(f"never settles: {decision}")

    def look(self) -> None:
        """As `settle`, and restarts after a crash."""
        try:
            self.settle()
        except Crashed:
            self.writes_until_crash = None

    def _apply(self, decision: Decision) -> bool:
        """Perform a decision; whether anything changed."""
        changed = False
        for action in decision.actions:
            changed = self._performed(action) or changed
        status = decision.status
        assert isinstance(status, OutputDatasetStatus)
        if status != self.status and not self.is_gone:
            self._write()
            self.status = OutputDatasetStatus.parse(status.dump())
            changed = True
        return changed

    def _write(self) -> None:
        if self.writes_until_crash is not None:
            if self.writes_until_crash == 0:
                raise Crashed
            self.writes_until_crash -= 1

    def _performed(self, action: object) -> bool:
        self._write()
        match action:
            case Create():
                return self._create(action)
            case Delete():
                return self._delete(action)
            case AddFinalizer():
                self.finalizers = (FINALIZER,)
            case RemoveFinalizer():
                self.finalizers = ()
                self.is_gone = self.is_deleting
            case Ensure():
                return False
        return True

    def _create(self, action: Create) -> bool:
        metadata = action.manifest["metadata"]
        name = str(metadata["name"])
        assert metadata["namespace"] == "shop"
        self._uids += 1
        uid = f"uid-{self._uids}"
        if action.resource.kind == "ConfigMap":
            run = str(metadata["labels"]["snaploom.io/run"])
            self.config_maps.setdefault(name, OwnedConfigMap(name, uid, run, "bundle"))
            return False
        if name in self.applications:
            return False  # 409: it is ours, and adopted
        stored = {**action.manifest, "metadata": {**metadata, "uid": uid}}
        application = FORMS[SETTINGS_SUBMITTER].read(stored)
        assert application is not None
        self.applications[name] = application
        self.created.append(application)
        return True

    def _delete(self, action: Delete) -> bool:
        if action.resource.kind == "ConfigMap":
            found = self.config_maps.get(action.name)
            assert found is None or found.uid == action.uid
            self.reports.pop(action.name.removesuffix("-report"), None)
            return self.config_maps.pop(action.name, None) is not None
        known = self.applications.get(action.name)
        assert known is None or known.uid == action.uid
        return self.applications.pop(action.name, None) is not None

    @property
    def in_flight(self) -> list[Application]:
        return [each for each in self.applications.values() if not each.state.is_terminal]

    def pass_time(self, seconds: float) -> None:
        self.now = EpochNanos(self.now + round(seconds * NANOS_PER_SECOND))

    def to_state(self, state: ApplicationState, message: str = "") -> None:
        for each in self.in_flight:
            self.applications[each.name] = replace(each, state=state, message=message)

    def end(self, phase: str = "SUCCEEDED", *, reported: bool = True, **report: object) -> None:
        """End the run in flight, if there is one, with a report or without."""
        for each in self.in_flight:
            if reported:
                self.report(each.name, phase, **report)
            is_well = phase == "SUCCEEDED"
            state = ApplicationState.COMPLETED if is_well else ApplicationState.FAILED
            self.applications[each.name] = replace(each, state=state)

    def report(self, run: str, phase: str, **report: object) -> None:
        manifest = {"uri": "/out/wide/", "sequence": len(self.created)}
        times = {"startedAt": format_instant(self.now), "finishedAt": format_instant(self.now)}
        self.reports[run] = a_report(phase, run, manifest=manifest, **times, **report)
        name = f"{run}-report"
        self.config_maps[name] = OwnedConfigMap(name, f"uid-of-{name}", run, "report")

    def remove_application(self) -> None:
        for each in self.in_flight:
            del self.applications[each.name]

    def recreate_application(self) -> None:
        """Somebody replaces the application in flight by another of the same name."""
        for each in self.in_flight:
            self._uids += 1
            self.applications[each.name] = replace(
                each, uid=f"uid-{self._uids}", state=ApplicationState.NEW
            )

    @property
    def phase(self) -> CurrentPhase | None:
        run = self.status.current_run if self.status is not None else None
        return run.phase if run is not None else None


SETTINGS_SUBMITTER = next(iter(FORMS))


@lru_cache(maxsize=64)
def _built(run: str) -> ObservedOutput:
    return an_output(**json.loads(run))


def _age(application: Application) -> tuple[int, str]:
    return (application.started_at, application.name)


Event = Callable[[Simulator], None]
SECONDS = [1, 31, 61, 601, 4_000]
PASSING = [state for state in ApplicationState if not state.is_terminal and state is not state.NEW]


def waits(seconds: int) -> Event:
    return lambda world: world.pass_time(seconds)


def becomes(**values: object) -> Event:
    return lambda world: [setattr(world, name, value) for name, value in values.items()] and None


def turns(state: ApplicationState) -> Event:
    return lambda world: world.to_state(state)


def suspends(suspend: bool) -> Event:
    return lambda world: world.run.update(suspend=suspend)


def ends(phase: str, reported: bool, retryable: bool, reason: str) -> Event:
    failure = {"reason": reason, "retryable": retryable} if phase == "FAILED" else {}
    return lambda world: world.end(phase, reported=reported, **failure)


EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from(SECONDS).map(waits),
    st.integers(0, 2).map(lambda n: becomes(declarations=f"declarations-{n}")),
    st.integers(0, 2).map(lambda n: becomes(upstream=f"upstream-{n}" if n else "")),
    st.integers(0, 2).map(lambda n: becomes(token=f"token-{n}" if n else "")),
    st.booleans().map(lambda slot: becomes(has_slot=slot)),
    st.integers(0, 4).map(lambda n: becomes(writes_until_crash=n)),
    st.just(becomes(sees_applications=False)),
    st.booleans().map(suspends),
    st.sampled_from(PASSING).map(turns),
    st.builds(
        ends,
        st.sampled_from(["SUCCEEDED", "FAILED"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["SourceNotReadable", "Invalid"]),
    ),
    st.just(Simulator.remove_application),
    st.just(Simulator.recreate_application),
)
RUNS = st.fixed_dictionaries(
    {"concurrencyPolicy": st.sampled_from(["Forbid", "Replace"])},
    optional={
        "schedule": st.just({"cron": "*/5 * * * *"}),
        "activeDeadlineSeconds": st.just(300),
        "historyLimit": st.just({"successful": 1, "failed": 0}),
        "deletionPolicy": st.just("Delete"),
    },
)


def lived(run: dict[str, object], events: list[Event]) -> Simulator:
    """A resource after events; what must hold always is looked at after each of them."""
    world = Simulator(run=dict(run))
    world.settle()
    for event in events:
        event(world)
        world.look()
        world.sees_applications = True
        world.look()
        assert len(world.in_flight) <= 1
        names = [application.name for application in world.created]
        assert len(set(names)) == len(names)
        assert_conditions(world.status)
    return world


def quieten(world: Simulator) -> None:
    """Nothing happens any more but that runs end well."""
    world.has_slot, world.writes_until_crash = True, None
    world.run.update(suspend=False)
    world.run.pop("schedule", None)
    for _ in range(8):
        world.pass_time(4_000)
        world.settle()
        world.end()
        world.settle()


def assert_conditions(status: OutputDatasetStatus | None) -> None:
    if status is None:
        return  # it died before the first status
    conditions = {condition.type: condition for condition in status.conditions}
    assert ConditionType.READY in conditions
    assert not {ConditionType.RECONCILING, ConditionType.STALLED} <= conditions.keys()
    if conditions[ConditionType.READY].status is ConditionStatus.TRUE:
        assert not {ConditionType.RECONCILING, ConditionType.STALLED} & conditions.keys()


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(RUNS, st.lists(EVENTS, max_size=25))
def test_in_any_order_every_trigger_is_answered_and_then_there_is_silence(run, events):
    world = lived(run, events)
    quieten(world)
    assert not world.in_flight
    last = world.status.last_run
    refused = last.phase is LastPhase.FAILED and not last.retryable
    assert refused or world.status.realised == world.declarations
    assert last.trigger.declarations == world.declarations
    assert world.upstream in ("", last.trigger.upstream)
    assert world.token in ("", last.trigger.token)
    runs = len(world.created)
    world.pass_time(100_000)
    world.settle()
    assert len(world.created) == runs


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(RUNS, st.lists(EVENTS, max_size=25))
def test_in_any_order_no_trigger_is_answered_twice(run, events):
    world = lived(run, events)
    for earlier, later in pairwise(world.created):
        is_retry = later.attempt == earlier.attempt + 1
        assert later.trigger != earlier.trigger or is_retry


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(EVENTS, max_size=15))
def test_status_that_is_lost_starts_no_second_application(events: list[Event]) -> None:
    world = lived({}, events)
    before = len(world.in_flight)
    world.status, world.writes_until_crash = None, None
    world.settle()
    assert len(world.in_flight) == before or not before
    assert len(world.in_flight) <= 1
