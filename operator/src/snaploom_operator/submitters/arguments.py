"""What the job is called with: names and numbers only, never anything that a spec says."""

from __future__ import annotations

from snaploom_operator.manifests.metadata import namespace_of, uid_of
from snaploom_operator.submitters.base import RunRequest

JOB_FILE = "local:///opt/snaploom/clusterjob.py"
"""The job in the image: a file there that is `snaploom.jobs.clusterjob`, wherever Python has it."""


def job_arguments(request: RunRequest, bundle: str) -> list[str]:
    """Arguments of `snaploom.jobs.clusterjob`.

    Args:
        request: the run.
        bundle: file or folder with its Bundle, as the job sees it.
    """
    return [
        "--bundle",
        bundle,
        "--uid",
        uid_of(request.owner),
        "--run-id",
        request.name,
        "--attempt",
        str(request.attempt),
        "--action",
        request.action.value.lower(),
        "--report",
        f"configmap:{namespace_of(request.owner)}/{request.report}",
    ]
