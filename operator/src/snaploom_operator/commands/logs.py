"""`snaploom logs`: the log lines of driver and operator about a run, by time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
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
from snaploom.visibletext import visible
from snaploom_operator.cluster.apiresources import PODS
from snaploom_operator.cluster.podlogs import LogLine, pod_log
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.clusteroptions import ClusterOptions
from snaploom_operator.commands.localruns import local_run
from snaploom_operator.commands.loglines import Line, driver_line, merged, operator_line
from snaploom_operator.commands.namespaceview import not_found_error, read_view
from snaploom_operator.commands.pastevents import past_events
from snaploom_operator.commands.resourcenames import Named, parse_runnable
from snaploom_operator.commands.runcontrol import Runnable
from snaploom_operator.errors import ClusterError
from snaploom_operator.objectmetadata import Metadata
from snaploom_operator.objects import LABEL_RUN, Ref

OPERATOR_SELECTOR = "app.kubernetes.io/component=operator"
"""Labels of the operator's pods."""
_FOLLOW_SECONDS = 2.0
"""Between two looks at a local run, as between two of `snaploom status --watch`."""


def logs(
    name: Runnable,
    /,
    *,
    run: Annotated[
        str | None, Parameter(help="Name of the run; default: the current or last one.")
    ] = None,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], help="Stream new lines until the run ends.")
    ] = False,
    operator_namespace: Annotated[
        str,
        Parameter(
            show_default=True,
            help="Namespace of the operator, whose log lines about the resource are "
            "included; empty to exclude them.",
        ),
    ] = "snaploom-system",
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Show the log lines of driver and operator about a run, by time."""
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
        resource = Ref(named.kind.name, place, named.name)
        view = await read_view(cluster, place, now())
        if str(named) not in view.resources:
            events = await past_events(cluster, resource)
            _print_events(f"{named} was deleted", events, not_found_error(named, view))
            return
        runs = _runs_in(view.resources[str(named)])
        if run is None and not runs:
            raise _nothing(named, "it has not run yet", "`snaploom status` shows what it waits for")
        chosen = run or runs[0].id
        since = next((each.started_at for each in runs if each.id == chosen), None)
        driver = await _driver_of(cluster, place, chosen)
        if driver is None and await _has_printed_local_run(
            cluster, place, named, chosen, is_followed=is_followed
        ):
            return
        operators = await _operators_in(cluster, operator_namespace)
        if driver is None and not operators:
            events = [each for each in await past_events(cluster, resource) if chosen in each.text]
            hint = (
                "its pod does not exist yet, or was deleted; `snaploom status` shows how the run "
                "ended"
            )
            missing = _nothing(named, f"the run {chosen} has no driver pod", hint)
            _print_events(f"no log of the run {chosen} is left", events, missing)
            return

    def lines(namespace: str, pod: str, since: str | None = None) -> AsyncIterator[LogLine]:
        return pod_log(
            namespace,
            pod,
            is_followed=is_followed,
            since=since,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )

    about_it = partial(operator_line, resource=resource)
    logs = [_parsed(lines(operator_namespace, pod, since), about_it) for pod in operators]
    if driver is not None:
        logs.append(_parsed(lines(place, driver), driver_line))
    async for line in merged(logs, is_followed=is_followed):
        _print(line)


def _print_events(why: str, events: Sequence[Line], missing: SnaploomError) -> None:
    """Print the events that are left of a deleted resource or run; an error if there are none."""
    if not events:
        raise missing
    sys.stderr.write(f"{why}; its events:\n")
    for event in events:
        _print(event)


def _print(line: Line | str) -> None:
    print(line if isinstance(line, Line) else visible(line), flush=True)  # noqa: T201 - the result


async def _parsed(
    log: AsyncIterator[LogLine], parse: Callable[[LogLine], Line | None]
) -> AsyncIterator[Line]:
    async for line in log:
        found = parse(line)
        if found is not None:
            yield found


async def _operators_in(cluster: Cluster, namespace: str) -> list[str]:
    """Names of the operator's pods; without them a note on stderr."""
    if not namespace:
        return []
    try:
        pods = await cluster.list(PODS, namespace=namespace, selector=OPERATOR_SELECTOR)
    except ClusterError as error:
        sys.stderr.write(f"operator log not available: {visible(error.message)}\n")
        return []
    if not pods.items:
        sys.stderr.write(
            f"operator log not available: no operator in the namespace {namespace}; "
            "set --operator-namespace\n"
        )
    return [Metadata.of(pod).name for pod in pods.items]


async def _has_printed_local_run(
    cluster: Cluster, place: str, named: Named, run: str, *, is_followed: bool
) -> bool:
    """Print a local run, and its news until it ends; False for other runs."""
    shown: tuple[str, ...] = ()
    while (found := await local_run(cluster, place, run)) is not None:
        resource = (await read_view(cluster, place, now())).resources.get(str(named))
        runs = () if resource is None else _runs_in(resource)
        progress = next((_progress(each) for each in runs if each.id == run), ())
        lines, is_over = found
        lines = (*lines, *progress)
        for line in lines:
            if line not in shown:
                _print(line)
        shown = lines
        if is_over or not is_followed:
            return True
        await asyncio.sleep(_FOLLOW_SECONDS)
    return bool(shown)


def _progress(run: CurrentRun | LastRun) -> tuple[str, ...]:
    if isinstance(run, CurrentRun) and run.progress:
        return (f"progress: {run.progress}",)
    return ()


def _runs_in(resource: AnyResource) -> tuple[CurrentRun | LastRun, ...]:
    """The current run, if its application was observed, and the last run."""
    status = resource.status if isinstance(resource, OutputDataset | SkippingIndex) else None
    if status is None:
        return ()
    current, last = status.current_run, status.last_run
    is_seen = current is not None and current.uid is not None
    return tuple(each for each in (current if is_seen else None, last) if each is not None)


async def _driver_of(cluster: Cluster, place: str, run: str) -> str | None:
    selector = f"{LABEL_RUN}={run},spark-role=driver"
    pods = await cluster.list(PODS, namespace=place, selector=selector)
    return Metadata.of(pods.items[-1]).name if pods.items else None


def _nothing(named: Named, message: str, hint: str) -> SnaploomError:
    return InvalidDeclarations([make_finding("SL191", message, resource=str(named), hint=hint)])
