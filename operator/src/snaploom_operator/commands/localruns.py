"""The log of a local run, which the operator executes as a process."""

from __future__ import annotations

from snaploom_operator.cluster.apiresources import CONFIG_MAPS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objectmetadata import mapping_in, text_in
from snaploom_operator.submitters import local


async def local_run(
    cluster: Cluster, namespace: str, run: str
) -> tuple[tuple[str, ...], bool] | None:
    """Host, process and end of stderr of a local run, and True if it has ended; None for others.

    Raises:
        ClusterError: the request failed.
    """
    try:
        stored = await cluster.get(CONFIG_MAPS, namespace, run)
    except ObjectMissing:
        return None
    application = local.LocalForm().read(stored)
    if application is None:
        return None
    data = mapping_in(stored, "data")
    host, process = text_in(data, local.HOST), text_in(data, local.PROCESS).partition(" ")[0]
    place = f"process {process} of {host}" if host else "not started"
    head = (
        f"local run {run}, {place}: {application.state or 'NEW'}",
        "its full log is in the output of its `snaploom operator run --local`",
    )
    output = text_in(data, local.MESSAGE).splitlines()
    lines = (*head, *(("end of its stderr:", *(f"  {line}" for line in output)) if output else ()))
    return lines, application.state.is_terminal
