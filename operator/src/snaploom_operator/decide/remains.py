"""Deletions of objects of ended runs: those beyond the history, and those created again."""

from collections.abc import Iterable
from typing import NamedTuple

from snaploom.models.common import EpochNanos
from snaploom.models.report import RunPhase
from snaploom.models.run import CurrentRun
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import Delete
from snaploom_operator.objects import Application, ApplicationState, known_instant
from snaploom_operator.submit.applications import FORMS

_MOST_AT_ONCE = 40
"""Objects deleted in one pass; the next pass continues."""
_OF_RUNS = ("bundle", "report")
"""Roles of ConfigMaps that are deleted with their run."""


class _Finished(NamedTuple):
    started_at: EpochNanos
    name: str
    has_succeeded: bool


def beyond_history(view: RunView, kept: Iterable[str]) -> tuple[Delete, ...]:
    """Deletions of runs beyond `run.historyLimit`, except those to be kept by name."""
    limits = view.settings.history_limit
    protected = set(kept) | {a.name for a in view.runs.applications if not a.state.is_terminal}
    finished = _history(view)
    for succeeded, limit in ((True, limits.successful), (False, limits.failed)):
        of_kind = [run for run in finished if run.has_succeeded is succeeded]
        spared = sum(run.name in protected for run in of_kind)
        others = [run.name for run in of_kind if run.name not in protected]
        protected.update(others[: max(limit - spared, 0)])
    applications = (
        _application_deletion(view, application)
        for application in view.runs.applications
        if application.name not in protected and not application.is_deleting
    )
    config_maps = (
        Delete(CONFIG_MAPS, view.namespace, config_map.name, config_map.uid)
        for config_map in view.runs.config_maps
        if config_map.role in _OF_RUNS and config_map.run not in protected
    )
    return (*applications, *config_maps)[:_MOST_AT_ONCE]


def recreated(view: RunView, current: CurrentRun | None) -> tuple[Delete, ...]:
    """Deletions of applications that were created again after their run ended.

    A create request of a paused process that lost its Lease can arrive after another process
    followed the run to its end.
    """
    last = view.last
    if last is None or last.uid is None or (current is not None and current.name == last.id):
        return ()
    return tuple(
        _application_deletion(view, application)
        for application in view.runs.applications
        if application.name == last.id
        and application.uid != last.uid
        and not application.state.is_terminal
        and not application.is_deleting
    )


def _history(view: RunView) -> list[_Finished]:
    """Runs that ended, newest first; a report outlives its application."""
    reports = {run: found.report for run, found in view.runs.reports.items()}
    found = {}
    for each in view.runs.applications:
        report = reports.get(each.name)
        agrees = report is None or report.phase is RunPhase.SUCCEEDED
        ended_well = each.state is ApplicationState.COMPLETED and agrees
        found[each.name] = _Finished(each.started_at, each.name, ended_well)
    for run, report in reports.items():
        if run not in found and report is not None:
            started = known_instant(report.started_at) or EpochNanos(0)
            found[run] = _Finished(started, run, report.phase is RunPhase.SUCCEEDED)
    return sorted(found.values(), reverse=True)


def _application_deletion(view: RunView, application: Application) -> Delete:
    resource = FORMS[application.submitter].resource
    return Delete(resource, view.namespace, application.name, application.uid)
