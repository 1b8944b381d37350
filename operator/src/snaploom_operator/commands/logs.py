"""`snaploom logs`: what driver and operator wrote about a run, in the order of time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Annotated

from cyclopts import Parameter

from snaploom.errors import SnaploomError
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentRun, LastRun
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import now
from snaploom_operator.cluster.podlogs import LogLine, pod_log
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.cluster.resources import PODS
from snaploom_operator.commands.asking import Runnable
from snaploom_operator.commands.loglines import Line, driver_line, operator_line
from snaploom_operator.commands.logmerging import merged
from snaploom_operator.commands.naming import Named, parse_runnable
from snaploom_operator.commands.options import ClusterOptions
from snaploom_operator.commands.reading import not_there, read_view
from snaploom_operator.errors import ClusterError
from snaploom_operator.metadata import Metadata
from snaploom_operator.objects import LABEL_RUN, Ref

OPERATOR_SELECTOR = "app.kubernetes.io/component=operator"
"""Labels of the chart's operator."""


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
    operator_namespace: Annotated[
        str,
        Parameter(
            show_default=True,
            help="Where the operator is, whose lines about the resource come in between; empty to "
            "leave them out.",
        ),
    ] = "snaploom-system",
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Show what driver and operator wrote about a run, in the order of time."""
    asyncio.run(_show(parse_runnable(name), run, cluster, operator_namespace, is_followed=follow))
    return 0


async def _show(
    named: Named,
    run: str | None,
    options: ClusterOptions,
    operator_namespace: str,
    *,
    is_followed: bool,
) -> None:
    place = options.place
    async with options.connected() as cluster:
        told = await _runs_of(cluster, place, named)
        chosen = run or _latest_run(named, told)
        since = next((each.started_at for each in told if each.id == chosen), None)
        driver = await _driver_of(cluster, place, chosen)
        operators = await _operators_in(cluster, operator_namespace)
    if driver is None and not operators:
        hint = (
            "its pod is not there yet, or not any more; runs of the submitter Local have none, and "
            "their lines are in the log of the operator that runs them"
        )
        raise _nothing(named, f"the run {chosen} has no driver pod", hint)

    def lines(namespace: str, pod: str, since: str | None = None) -> AsyncIterator[LogLine]:
        return pod_log(
            namespace,
            pod,
            is_followed=is_followed,
            since=since,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )

    resource = Ref(named.kind.name, place, named.name)
    logs = [_of_operator(lines(operator_namespace, pod, since), resource) for pod in operators]
    if driver is not None:
        logs.append(_of_driver(lines(place, driver)))
    async for line in merged(logs, is_followed=is_followed):
        print(line, flush=True)  # noqa: T201 - the result


async def _of_driver(log: AsyncIterator[LogLine]) -> AsyncIterator[Line]:
    async for line in log:
        yield driver_line(line)


async def _of_operator(log: AsyncIterator[LogLine], resource: Ref) -> AsyncIterator[Line]:
    async for line in log:
        found = operator_line(line, resource)
        if found is not None:
            yield found


async def _operators_in(cluster: Cluster, namespace: str) -> list[str]:
    """Names of the operator's pods; none where they may not be seen, and whoever asks is told."""
    if not namespace:
        return []
    try:
        pods = await cluster.list(PODS, namespace=namespace, selector=OPERATOR_SELECTOR)
    except ClusterError as error:
        sys.stderr.write(f"without the operator's lines: {error.message}\n")
        return []
    if not pods.items:
        sys.stderr.write(
            f"without the operator's lines: it is not in the namespace {namespace}; "
            "name its own with --operator-namespace\n"
        )
    return [Metadata.of(pod).name for pod in pods.items]


async def _runs_of(cluster: Cluster, place: str, named: Named) -> tuple[CurrentRun | LastRun, ...]:
    """The run in flight, if its application was seen, and the last one."""
    view = await read_view(cluster, place, now())
    if str(named) not in view.resources:
        raise not_there(named, view)
    return _runs_in(view.resources[str(named)])


def _runs_in(resource: AnyResource) -> tuple[CurrentRun | LastRun, ...]:
    status = resource.status if isinstance(resource, OutputDataset | SkippingIndex) else None
    if status is None:
        return ()
    current, last = status.current_run, status.last_run
    is_seen = current is not None and current.uid is not None
    return tuple(each for each in (current if is_seen else None, last) if each is not None)


def _latest_run(named: Named, told: tuple[CurrentRun | LastRun, ...]) -> str:
    if not told:
        raise _nothing(named, "it has not run yet", "`snaploom status` tells what it waits for")
    return told[0].id


async def _driver_of(cluster: Cluster, place: str, run: str) -> str | None:
    """Name of the driver's pod; None when it is not there any more, or not yet."""
    selector = f"{LABEL_RUN}={run},spark-role=driver"
    pods = await cluster.list(PODS, namespace=place, selector=selector)
    return Metadata.of(pods.items[-1]).name if pods.items else None


def _nothing(named: Named, message: str, hint: str) -> SnaploomError:
    return InvalidDeclarations([make_finding("SL191", message, resource=str(named), hint=hint)])
