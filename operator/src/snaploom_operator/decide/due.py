"""Is a run due, what for, and when is the next?

A run answers everything that asks for one at the moment when it is decided: today's declarations,
what the outputs that it reads have published, the annotation, and the schedule up to now. It is due
when one of these is no longer what the last run answered, or when a failed one is to be tried
again. So nothing is answered twice, and nothing is forgotten while another run is at work.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import LastPhase, LastRun, RunAction, Trigger
from snaploom.models.times import EpochNanos
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.view import RunView
from snaploom_operator.instants import known_instant, later

DECLARED = frozenset({"Invalid", "NoUniqueJoinTree", "NotSupported", "IndexNotPossible"})
"""Reasons that lie in the declarations alone: neither time nor data mends them."""


@dataclass(frozen=True)
class Due:
    """A run that is due."""

    trigger: Trigger
    attempt: int
    why: str
    """For people."""


def due(view: RunView) -> Due | None:
    """The run that is due now, whether or not one is in flight; None when none is."""
    last = _last_weaving(view)
    if last is None:
        may = not view.unpublished or view.token
        return Due(view.trigger, 0, "it has never run") if may else None
    changes = changed(view, last.trigger, last.started_at)
    if not is_worth_a_tick(last):
        changes = [why for why in changes if why in (DECLARATIONS_CHANGED, ASKED_FOR)]
    if changes:
        return Due(view.trigger, 0, " and ".join(changes))
    at = retry_at(view, last)
    if at is not None and at <= view.now:
        return Due(view.trigger, last.attempt + 1, "the last attempt failed")
    if last.phase is LastPhase.STOPPED and last.reason == Reason.RUN_STOPPED:
        # What it made room for is not asked for any more, and what it was for was never answered.
        return Due(view.trigger, 0, "the last run was stopped, and none took its place")
    return None


DECLARATIONS_CHANGED = "its declarations changed"
UPSTREAM_PUBLISHED = "an output that it reads has published"
ASKED_FOR = "a run was asked for"
TICKED = "the schedule says so"


def changed(view: RunView, answered: Trigger, started_at: str) -> list[str]:
    """What asks for a run, and was not answered by one.

    Args:
        view: the resource.
        answered: what that run was for.
        started_at: when it was decided.
    """
    asks = {
        DECLARATIONS_CHANGED: view.declarations not in ("", answered.declarations),
        UPSTREAM_PUBLISHED: view.upstream not in ("", answered.upstream),
        ASKED_FOR: view.token not in ("", answered.token),
        TICKED: _has_ticked(view, answered, started_at),
    }
    return [why for why, holds in asks.items() if holds]


def is_worth_a_tick(last: LastRun) -> bool:
    """Whether the schedule may bring a run although nothing changed since the last one."""
    has_failed = last.phase is not LastPhase.SUCCEEDED and not last.retryable
    return not (has_failed and last.reason in DECLARED)


def retry_at(view: RunView, last: LastRun) -> EpochNanos | None:
    """When a failed run is tried again; None when it is not."""
    if not may_retry(view, last):
        return None
    retry = view.settings.retry
    ended = known_instant(last.finished_at)
    if ended is None or ended > view.now:
        return view.now
    # A hundred doublings are more than any wait: the exponent is bounded before the product.
    wait = min(retry.backoff_seconds * 2 ** min(last.attempt, 32), retry.max_backoff_seconds)
    return later(ended, wait)


def may_retry(view: RunView, last: LastRun) -> bool:
    """Whether the last run failed, and is tried again with nothing changed."""
    failed = last.phase is not LastPhase.SUCCEEDED and last.retryable
    return failed and last.attempt < view.settings.retry.limit


def _last_weaving(view: RunView) -> LastRun | None:
    """The last run that was no deletion; a resource outlives one only when a person says so."""
    last = view.last
    return last if last is not None and last.action is RunAction.RUN else None


def _has_ticked(view: RunView, answered: Trigger, started_at: str) -> bool:
    tick, schedule = view.ticks.latest, view.schedule
    if tick is None or schedule is None:
        return False
    deadline = schedule.starting_deadline_seconds
    if deadline is not None and view.now > later(tick, deadline):
        return False
    before = (known_instant(answered.scheduled), known_instant(started_at))
    # A time ahead of now was written before a clock was set back: nothing is known by it.
    return all(tick > instant for instant in before if instant is not None and instant <= view.now)
