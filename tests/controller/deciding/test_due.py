"""A run is due when something asks for one that the last run did not answer."""

from dataclasses import replace

import pytest
from support.operator.observations import (
    DECLARATIONS,
    NOW,
    SETTINGS,
    an_end,
    an_index,
    an_output,
    at,
    conditions_of,
    current_of,
    observing,
    ready,
    with_status,
)

from snaploom.models.common import format_instant, parse_instant
from snaploom.models.findings import Finding, Severity
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastRun, Schedule, Trigger
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runview import ticks
from snaploom_operator.decision import ObservedOutput, Queue
from snaploom_operator.objects import ANNOTATION_PAUSED, ANNOTATION_RUN

EVERY_HOUR = {"cron": "0 * * * *"}
TICK = "2026-01-10T12:00:00Z"


def after(last: LastRun | None, **run: object) -> ObservedOutput:
    """An output whose declarations were realised, by that run or an earlier one."""
    return an_output(OutputDatasetStatus(realised=DECLARATIONS, last_run=last), **run)


def begun(observed: ObservedOutput) -> Trigger | None:
    """What the run is for that is written down now; None when none is."""
    current = current_of(decide(observed, SETTINGS))
    return current.trigger if current is not None else None


def test_first_run_is_due_at_once_and_answers_the_tick_that_has_come() -> None:
    observed = an_output(schedule=EVERY_HOUR)
    assert begun(observed) == Trigger(declarations=DECLARATIONS, scheduled=TICK)
    decision = decide(observed, SETTINGS)
    assert not decision.actions
    assert ready(decision) == ("False", "RunSubmitted")


def test_nothing_is_due_after_a_run_that_answered_everything() -> None:
    assert begun(after(an_end())) is None


def test_other_declarations_are_due() -> None:
    observed = replace(after(an_end()), declarations="others")
    assert begun(observed) == Trigger(declarations="others")


def test_outputs_that_published_make_a_run_due() -> None:
    observed = replace(after(an_end()), upstream="further")
    assert begun(observed) == Trigger(declarations=DECLARATIONS, upstream="further")


def test_annotation_makes_a_run_due_once() -> None:
    annotations = {ANNOTATION_RUN: "again"}
    asked = Trigger(declarations=DECLARATIONS, token="again")
    assert begun(an_output(OutputDatasetStatus(last_run=an_end()), annotations)) == asked
    answered = OutputDatasetStatus(realised=DECLARATIONS, last_run=an_end(trigger=asked))
    assert begun(an_output(answered, annotations)) is None
    assert begun(an_output(answered)) is None


def test_annotation_of_any_length_stays_short_in_the_status() -> None:
    long = an_output(OutputDatasetStatus(last_run=an_end()), {ANNOTATION_RUN: "x" * 100_000})
    trigger = begun(long)
    assert len(trigger.token) == 64


def test_latest_tick_is_answered_once_however_many_were_missed() -> None:
    missed = after(an_end(ended=-10 * 3600), schedule=EVERY_HOUR)
    assert begun(missed) == Trigger(declarations=DECLARATIONS, scheduled=TICK)
    answered = an_end(trigger=Trigger(declarations=DECLARATIONS, scheduled=TICK), ended=-5)
    assert begun(after(answered, schedule=EVERY_HOUR)) is None


def test_tick_that_came_before_the_last_run_began_is_answered_by_it() -> None:
    began_after = an_end(started_at=at(-10), finished_at=at(-5))
    assert begun(after(began_after, schedule=EVERY_HOUR)) is None


@pytest.mark.parametrize(("deadline", "is_due"), [(29, False), (31, True)])
def test_tick_is_left_out_after_the_starting_deadline(deadline: int, is_due: bool) -> None:
    schedule = EVERY_HOUR | {"startingDeadlineSeconds": deadline}
    observed = after(an_end(ended=-3600), schedule=schedule)
    assert (begun(observed) is not None) is is_due


def test_clock_that_was_set_back_does_not_stop_the_schedule() -> None:
    future = an_end(ended=400 * 86_400)
    observed = after(future, schedule=EVERY_HOUR)
    assert begun(observed) is not None
    once = future.model_copy(update={"trigger": Trigger(declarations=DECLARATIONS, scheduled=TICK)})
    assert begun(after(once, schedule=EVERY_HOUR)) is None


def test_ticks_are_those_of_the_zone() -> None:
    schedule = after(None, schedule={"cron": "0 2 * * *", "timeZone": "Australia/Melbourne"})
    found = ticks(schedule.resource.spec.run.schedule, NOW)
    assert found.latest is not None
    assert found.next is not None
    assert format_instant(found.latest) == "2026-01-09T15:00:00Z"
    assert format_instant(found.next) == "2026-01-10T15:00:00Z"


def test_hour_that_the_clock_shows_twice_has_its_ticks_twice() -> None:
    schedule = Schedule(cron="*/30 * * * *", time_zone="America/New_York")
    found = ticks(schedule, parse_instant("2026-11-01T06:45:00Z"))
    assert found.latest == parse_instant("2026-11-01T06:30:00Z")
    assert found.next == parse_instant("2026-11-01T07:00:00Z")


def test_next_run_time_is_the_next_tick() -> None:
    observed = after(an_end(ended=-5, started_at=at(-20)), schedule=EVERY_HOUR)
    decision = decide(observed, SETTINGS)
    assert decision.status.dump()["nextRunTime"] == "2026-01-10T13:00:00Z"
    assert decision.requeue_after == pytest.approx(3570)


@pytest.mark.parametrize(
    ("attempt", "waited", "attempt_after"),
    [
        pytest.param(0, 59, None, id="before the backoff"),
        pytest.param(0, 60, 1, id="after the backoff"),
        pytest.param(1, 119, None, id="before the doubled backoff"),
        pytest.param(1, 120, 2, id="after the doubled backoff"),
        pytest.param(2, 150, 3, id="after the longest backoff"),
        pytest.param(3, 100_000, None, id="after the last attempt"),
    ],
)
def test_failed_run_is_tried_again_after_a_backoff(attempt, waited, attempt_after):
    retry = {"limit": 3, "backoffSeconds": 60, "maxBackoffSeconds": 150}
    observed = after(an_end("Failed", -waited, attempt=attempt), retry=retry)
    decision = decide(observed, SETTINGS)
    current = current_of(decision)
    assert (current.attempt if current is not None else None) == attempt_after


def test_retry_is_the_next_run_and_named_with_its_time() -> None:
    observed = with_status(after(an_end("Failed", -20)), realised=None)
    decision = decide(observed, SETTINGS)
    assert ready(decision) == ("False", "RunWillBeRetried")
    assert "attempt 2 of 4 follows at 2026-01-10T12:01:10Z" in decision.status.conditions[0].message
    assert decision.status.dump()["nextRunTime"] == "2026-01-10T12:01:10Z"
    assert decision.requeue_after == pytest.approx(40)


def test_change_starts_the_attempts_anew() -> None:
    failed = an_end("Failed", -1, attempt=3)
    current = current_of(decide(replace(after(failed), declarations="others"), SETTINGS))
    assert current.attempt == 0


def test_exhausted_retries_stall_until_something_changes() -> None:
    observed = with_status(after(an_end("Failed", -9000, attempt=3)), realised=None)
    decision = decide(observed, SETTINGS)
    assert ready(decision) == ("False", "RetriesExhausted")
    assert conditions_of(decision)["Stalled"] == ("True", "RetriesExhausted")
    assert begun(replace(observed, upstream="further")) is not None


def test_refused_run_stalls_and_is_not_tried_again() -> None:
    failed = an_end("Failed", -9000, reason="HistoryIncompatible", retryable=False)
    decision = decide(with_status(after(failed), realised=None), SETTINGS)
    assert ready(decision) == ("False", "RunRefused")
    assert conditions_of(decision)["Stalled"] == ("True", "RunRefused")
    assert current_of(decision) is None


@pytest.mark.parametrize(
    ("reason", "is_due"),
    [
        pytest.param("HistoryIncompatible", True, id="data may be other by now"),
        pytest.param("Invalid", False, id="declarations are the same"),
        pytest.param("NoUniqueJoinTree", False, id="the tree is the same"),
    ],
)
def test_tick_tries_again_what_data_caused_and_not_what_declarations_did(reason, is_due):
    failed = an_end("Failed", -9000, reason=reason, retryable=False)
    assert (begun(after(failed, schedule=EVERY_HOUR)) is not None) is is_due
    changed = replace(after(failed, schedule=EVERY_HOUR), declarations="others")
    assert begun(changed) is not None


def test_suspended_resource_starts_nothing_and_reports_it() -> None:
    decision = decide(an_output(suspend=True), SETTINGS)
    assert current_of(decision) is None
    assert ready(decision) == ("False", "Suspended")
    assert conditions_of(decision)["Suspended"] == ("True", "Suspended")
    assert "Reconciling" not in conditions_of(decision)


@pytest.mark.parametrize("value", ["true", "yes", "True", "1", "on", "until monday"])
def test_any_value_but_false_pauses(value: str) -> None:
    decision = decide(an_output(annotations={ANNOTATION_PAUSED: value}), SETTINGS)
    assert (current_of(decision), decision.actions) == (None, ())
    assert conditions_of(decision)["Suspended"] == ("True", "Paused")


@pytest.mark.parametrize("value", ["", "false", "False", "no", "0", "off"])
def test_what_yaml_reads_as_false_pauses_nothing(value: str) -> None:
    decision = decide(an_output(annotations={ANNOTATION_PAUSED: value}), SETTINGS)
    assert current_of(decision) is not None
    assert "Suspended" not in conditions_of(decision)


def test_first_run_waits_for_the_outputs_that_it_reads() -> None:
    observed = replace(an_output(), unpublished=("upstream",))
    decision = decide(observed, SETTINGS)
    assert current_of(decision) is None
    assert ready(decision) == ("False", "Waiting")
    assert "OutputDataset/upstream" in decision.status.conditions[0].message


def test_nothing_is_begun_while_something_is_wrong() -> None:
    fault = Finding(code="SL130", severity=Severity.ERROR, resource="x", message="not there")
    decision = decide(replace(an_output(), findings=(fault,), bundle=None), SETTINGS)
    assert current_of(decision) is None
    assert ready(decision) == ("False", "ReferenceMissing")


def test_waiting_run_is_dropped_when_it_is_due_no_more() -> None:
    full = Queue(has_slot=False, position=0, waiting=0, limit=1)
    others = observing(replace(after(an_end()), declarations="others"), queue=full)
    queued = decide(others, SETTINGS).status
    assert queued.current_run.phase is CurrentPhase.QUEUED
    back = with_status(after(an_end()), current_run=queued.current_run)
    assert current_of(decide(back, SETTINGS)) is None


@pytest.mark.parametrize(
    ("refresh", "is_due"),
    [
        pytest.param({"trigger": "MANUAL"}, False, id="by hand only"),
        pytest.param({"trigger": "SCHEDULE"}, True, id="by schedule"),
    ],
)
def test_schedule_refreshes_an_index_only_where_it_is_the_trigger(refresh, is_due):
    last = an_end(ended=-9000)
    status = SkippingIndexStatus(realised=DECLARATIONS, last_run=last)
    observed = an_index(status, refresh=refresh, schedule=EVERY_HOUR)
    assert (current_of(decide(observed, SETTINGS)) is not None) is is_due


@pytest.mark.parametrize(("trigger", "is_due"), [("MANUAL", False), ("ON_PUBLISH", True)])
def test_publication_refreshes_an_index_only_where_it_is_the_trigger(trigger, is_due):
    status = SkippingIndexStatus(realised=DECLARATIONS, last_run=an_end())
    observed = replace(an_index(status, refresh={"trigger": trigger}), upstream="further")
    assert (current_of(decide(observed, SETTINGS)) is not None) is is_due
