"""The outcome of a job whose operator stopped: its exit code is lost, its Report is not."""

from __future__ import annotations

from snaploom.models.report import RunPhase
from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Application, ApplicationState
from snaploom_operator.store.children import found_report

_NO_REPORT = "the operator was stopped during the run, which wrote no final report"


async def final_state(
    application: Application, namespace: str, report: str, cluster: Cluster
) -> tuple[ApplicationState, str]:
    """State and message of an ended job whose end was not observed.

    A job writes its final Report last, after all that it publishes.

    Raises:
        ClusterError: the request failed, so that the outcome is unknown.
    """
    try:
        stored = await cluster.get(CONFIG_MAPS, namespace, report)
    except ObjectMissing:
        return ApplicationState.FAILED, _NO_REPORT
    found = found_report(stored, application.name, application.owner_uid)
    if found.report is None:
        return ApplicationState.FAILED, f"{_NO_REPORT}: {found.trouble}"
    if found.report.phase is RunPhase.SUCCEEDED:
        return ApplicationState.COMPLETED, ""
    if found.report.phase is RunPhase.RUNNING:
        return ApplicationState.FAILED, _NO_REPORT
    return ApplicationState.FAILED, found.report.message or _NO_REPORT
