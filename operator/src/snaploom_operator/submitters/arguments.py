"""Command-line arguments of jobs: names and numbers only, never content of a spec."""

from __future__ import annotations

from snaploom.models.run import CurrentRun
from snaploom_operator.manifests.childmetadata import namespace_of, uid_of
from snaploom_operator.manifests.configmaps import report_name
from snaploom_operator.objects import Application
from snaploom_operator.submitters.base import RunRequest

JOB_FILE = "local:///opt/snaploom/clusterjob.py"
"""The job's file in the image, which runs `snaploom.jobs.clusterjob`."""


def job_arguments(request: RunRequest, bundle: str) -> list[str]:
    """Arguments of `snaploom.jobs.clusterjob` for a run that is about to be submitted."""
    report = report_name(request.run.name)
    namespace = namespace_of(request.owner)
    return run_arguments(request.run, uid_of(request.owner), bundle, namespace, report)


def run_arguments(
    run: CurrentRun | Application, uid: str, bundle: str, namespace: str, report: str
) -> list[str]:
    """Arguments of the job of a run, by file or folder with its Bundle and name of its Report."""
    return [
        "--bundle", bundle,
        "--uid", uid,
        "--run-id", run.name,
        "--attempt", str(run.attempt),
        "--action", run.action.value.lower(),
        "--report", f"configmap:{namespace}/{report}",
    ]  # fmt: skip
