"""The run that is due, its cause, and the time of the next one.

A run's trigger records everything that can start one when it is decided: the current declarations,
what its upstream outputs have published, the annotation, and the latest schedule tick. A run is due
if one of these differs from the last run's trigger, or if a failed run is to be retried. So no
trigger is handled twice, and none is lost while another run is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import LastPhase, LastRun, RunAction, Trigger
from snaploom.models.times import EpochNanos
from snaploom_operator.attempts import has_attempts
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.runview import RunView
from snaploom_operator.instants import known_instant, later

DECLARED = frozenset({"Invalid", "NoUniqueJoinTree", "NotSupported", "IndexNotPossible"})
"""Reasons of failures that only a change of the declarations can fix."""


@dataclass(frozen=True)
class Due:
    """A run that is due."""

    trigger: Trigger
    attempt: int
    why: str
    """Text for messages."""


def due(view: RunView) -> Due | None:
    """The run that is due now, whether or not one is in flight; None when none is."""
    last = view.last
    if last is None or last.action is not RunAction.RUN:
        may = not view.unpublished or view.token
        return Due(view.trigger, 0, "it has never run") if may else None
    changes = changed(view, last.trigger, last.started_at)
    if not may_run_on_schedule(last):
        changes = [why for why in changes if why in (DECLARATIONS_CHANGED, ASKED_FOR)]
    if changes:
        return Due(view.trigger, 0, " and ".join(changes))
    at = retry_at(view, last)
    if at is not None and at <= view.now:
        return Due(view.trigger, last.attempt + 1, "the last attempt failed")
    if last.phase is LastPhase.STOPPED and last.reason == Reason.RUN_STOPPED:
        # The run that replaced it is not due any more, and its own trigger was not handled.
        return Due(view.trigger, 0, "the last run was stopped, and none took its place")
    return None


DECLARATIONS_CHANGED = "its declarations changed"
UPSTREAM_PUBLISHED = "an output that it reads has published"
ASKED_FOR = "a run was asked for"
TICKED = "the schedule is due"


def changed(view: RunView, answered: Trigger, started_at: str) -> list[str]:
    """Triggers that the last run has not handled, by its trigger and the time of its decision."""
    asks = {
        DECLARATIONS_CHANGED: view.declarations not in ("", answered.declarations),
        UPSTREAM_PUBLISHED: view.upstream not in ("", answered.upstream),
        ASKED_FOR: view.token not in ("", answered.token),
        TICKED: _has_ticked(view, answered, started_at),
    }
    return [why for why, holds in asks.items() if holds]


def may_run_on_schedule(last: LastRun) -> bool:
    """Return whether the schedule may start a run although nothing changed since the last one."""
    has_failed = last.phase is not LastPhase.SUCCEEDED and not last.retryable
    return not (has_failed and last.reason in DECLARED)


def retry_at(view: RunView, last: LastRun) -> EpochNanos | None:
    """The time of a failed run's retry; None if it has none."""
    if not has_attempts(last, view.settings.retry):
        return None
    retry = view.settings.retry
    ended = known_instant(last.finished_at)
    if ended is None or ended > view.now:
        return view.now
    # A hundred doublings are more than any wait: the exponent is bounded before the product.
    wait = min(retry.backoff_seconds * 2 ** min(last.attempt, 32), retry.max_backoff_seconds)
    return later(ended, wait)


def _has_ticked(view: RunView, answered: Trigger, started_at: str) -> bool:
    tick, schedule = view.ticks.latest, view.settings.schedule
    if tick is None or schedule is None:
        return False
    deadline = schedule.starting_deadline_seconds
    if deadline is not None and view.now > later(tick, deadline):
        return False
    before = (known_instant(answered.scheduled), known_instant(started_at))
    # A time in the future was written before a clock was set back: ignore it.
    return all(tick > instant for instant in before if instant is not None and instant <= view.now)
