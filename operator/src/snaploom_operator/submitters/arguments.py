"""Command-line arguments of jobs: names and numbers only, never content of a spec."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import RunAction
from snaploom_operator.manifests.childmetadata import namespace_of, uid_of
from snaploom_operator.objects import Application
from snaploom_operator.submitters.base import RunRequest

JOB_FILE = "local:///opt/snaploom/clusterjob.py"
"""The job's file in the image, which runs `snaploom.jobs.clusterjob`."""


def job_arguments(request: RunRequest, bundle: str) -> list[str]:
    """Arguments of `snaploom.jobs.clusterjob` for a run that is about to be submitted.

    Args:
        request: the run.
        bundle: file or folder with its Bundle, as the job sees it.
    """
    names = _Names(uid_of(request.owner), request.name, request.attempt, request.action)
    return _arguments(names, bundle, namespace_of(request.owner), request.report)


def local_arguments(
    application: Application, bundle: str, namespace: str, report: str
) -> list[str]:
    """The same for a run that is stored in the cluster.

    Args:
        application: the run.
        bundle: file with its Bundle.
        namespace: its namespace.
        report: name of the ConfigMap for its Report.
    """
    names = _Names(application.owner_uid, application.name, application.attempt, application.action)
    return _arguments(names, bundle, namespace, report)


@dataclass(frozen=True)
class _Names:
    uid: str
    run: str
    attempt: int
    action: RunAction


def _arguments(names: _Names, bundle: str, namespace: str, report: str) -> list[str]:
    return [
        "--bundle", bundle,
        "--uid", names.uid,
        "--run-id", names.run,
        "--attempt", str(names.attempt),
        "--action", names.action.value.lower(),
        "--report", f"configmap:{namespace}/{report}",
    ]  # fmt: skip
