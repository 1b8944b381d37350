"""`snaploom logs`: what the driver of a run wrote."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from snaploom.errors import SnaploomError
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import now
from snaploom_operator.cluster.podlogs import pod_log
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import PODS
from snaploom_operator.commands.asking import Runnable
from snaploom_operator.commands.naming import Named, parse_runnable
from snaploom_operator.commands.options import ClusterOptions
from snaploom_operator.commands.reading import not_there, read_view
from snaploom_operator.metadata import Metadata
from snaploom_operator.objects import LABEL_RUN


def logs(
    name: Runnable,
    /,
    *,
    run: Annotated[
        str | None, Parameter(help="Name of the run; omitted, the one in flight, or the last.")
    ] = None,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], help="Go on with what is written from now on.")
    ] = False,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Show what the Spark driver of a run wrote."""
    asyncio.run(_show(parse_runnable(name), run, cluster, is_followed=follow))
    return 0


async def _show(
    named: Named, run: str | None, options: ClusterOptions, *, is_followed: bool
) -> None:
    place = options.place
    async with options.connected() as cluster:
        chosen = run or await _latest_run(cluster, place, named)
        pod = await _driver_of(cluster, place, chosen, named)
    lines = pod_log(
        place,
        pod,
        is_followed=is_followed,
        kubeconfig=options.kubeconfig,
        context=options.context,
    )
    async for line in lines:
        print(line, flush=True)  # noqa: T201 - the result


async def _latest_run(cluster: Cluster, place: str, named: Named) -> str:
    view = await read_view(cluster, place, now())
    if str(named) not in view.resources:
        raise not_there(named, view)
    chosen = _run_in(view.resources[str(named)])
    if chosen is None:
        raise _nothing(named, "it has not run yet", "`snaploom status` tells what it waits for")
    return chosen


def _run_in(resource: AnyResource) -> str | None:
    status = resource.status if isinstance(resource, OutputDataset | SkippingIndex) else None
    if status is None:
        return None
    if status.current_run is not None and status.current_run.uid is not None:
        return status.current_run.id
    return status.last_run.id if status.last_run is not None else None


async def _driver_of(cluster: Cluster, place: str, run: str, named: Named) -> str:
    """Name of the driver's pod.

    Raises:
        InvalidDeclarations: it is not there any more, or not yet.
    """
    selector = f"{LABEL_RUN}={run},spark-role=driver"
    pods = await cluster.list(PODS, namespace=place, selector=selector)
    if not pods.items:
        hint = "its pod is not there yet, or not any more; runs of the submitter Local have none"
        raise _nothing(named, f"the run {run} has no driver pod", hint)
    return Metadata.of(pods.items[-1]).name


def _nothing(named: Named, message: str, hint: str) -> SnaploomError:
    return InvalidDeclarations([make_finding("SL191", message, resource=str(named), hint=hint)])
