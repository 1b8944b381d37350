"""`snaploom logs`: the log lines of driver and operator about a run, by time."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.confidential import visible, visible_lines
from snaploom.errors import SnaploomError
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, format_instant, now
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentRun, LastRun
from snaploom.models.skippingindex import SkippingIndex
from snaploom_operator.cluster.client import LogLine, pod_log
from snaploom_operator.cluster.port import CONFIG_MAPS, EVENTS, PODS, Cluster
from snaploom_operator.commands.options import (
    ClusterOptions,
    Named,
    not_found_error,
    parse_runnable,
    read_view,
)
from snaploom_operator.commands.runcontrol import Runnable
from snaploom_operator.errors import ClusterError, ObjectMissing
from snaploom_operator.objects import (
    LABEL_RUN,
    JsonObject,
    Metadata,
    Ref,
    known_instant,
    mapping_in,
    text_in,
)
from snaploom_operator.submit import local
from snaploom_operator.submit.applications import LocalForm


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
    application = LocalForm().read(stored)
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


DRIVER, OPERATOR = "driver", "operator"
MERGE_SECONDS = 0.5
"""Seconds that lines of followed logs are held, so that earlier lines of other logs can arrive."""
_FIELDS = ("run", "reason")
"""Fields of a JSON log entry that are shown besides level and message."""
_TEXT = re.compile(r"\S+Z (?P<level>[A-Z]+) ++(?P<message>.*)")
"""A line of the operator's text format, which begins with its time."""


@dataclass(frozen=True, order=True)
class Line:
    """A displayed line."""

    time: EpochNanos
    source: str
    """`driver`, `operator` or `event`."""
    text: str

    def __str__(self) -> str:
        """The line for a terminal; further lines of its text are indented, as others never are."""
        text = visible_lines(self.text).replace("\n", "\n  ")
        moment = EpochNanos(self.time // NANOS_PER_MILLISECOND * NANOS_PER_MILLISECOND)
        return f"{format_instant(moment)} {self.source:<8} {text}"


def driver_line(line: LogLine) -> Line:
    """A line of a driver: Snaploom's JSON as text, Spark's lines unchanged."""
    entry = _object(line.text)
    return Line(line.time, DRIVER, line.text if entry is None else _shown(entry, ("reason",)))


def operator_line(line: LogLine, resource: Ref) -> Line | None:
    """A line of the operator, JSON or text, about a resource; None for other lines."""
    entry = _object(line.text)
    if entry is not None:
        is_meant = entry.get("resource") == str(resource)
        return Line(line.time, OPERATOR, _shown(entry, _FIELDS)) if is_meant else None
    if f" resource={resource} " not in f"{line.text} ":
        return None
    match = _TEXT.fullmatch(line.text.replace(f" resource={resource}", "", 1))
    text = line.text if match is None else f"{match['level']:<7} {match['message']}"
    return Line(line.time, OPERATOR, text)


def _object(text: str) -> dict[str, JsonValue] | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "message" in found else None


def _shown(entry: dict[str, JsonValue], fields: tuple[str, ...]) -> str:
    shown = "".join(f" {name}={entry[name]}" for name in fields if entry.get(name))
    text = f"{str(entry.get('level', '')).upper():<7} {entry['message']}{shown}"
    exception = entry.get("exception")
    return f"{text}\n{exception}" if exception else text


async def merged(logs: Sequence[AsyncIterator[Line]], *, is_followed: bool) -> AsyncIterator[Line]:
    """Merge logs by the time of their lines.

    Followed logs are in order as far as their lines arrive within half a second.

    Raises:
        ClusterError: a log failed; its earlier lines were returned.
    """
    waiting: list[Line] = []
    feeding = asyncio.gather(*(_feed(log, waiting) for log in logs))
    try:
        while not feeding.done():
            await asyncio.wait([feeding], timeout=MERGE_SECONDS if is_followed else None)
            while waiting:
                yield heappop(waiting)
        feeding.result()
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def _feed(log: AsyncIterator[Line], waiting: list[Line]) -> None:
    async for line in log:
        heappush(waiting, line)


EVENT = "event"
NAMESPACE, DEFAULT = "Namespace", "default"
"""Events of a terminating namespace regard the namespace, and are in the namespace `default`."""


async def past_events(cluster: Cluster, resource: Ref) -> list[Line]:
    """Events about a resource and earlier ones of its name, the oldest first.

    The API server keeps them for an hour.
    """
    near, of_namespace = await asyncio.gather(
        _listed(cluster, resource.namespace), _listed(cluster, DEFAULT)
    )
    start, about = f"{resource.identity}: ", Ref(NAMESPACE, "", resource.namespace)
    own = (event for event in near if _is_about(event, resource))
    others = (event for event in of_namespace if _is_about(event, about))
    named = (event for event in others if text_in(event, "note").startswith(start))
    return sorted(map(_line, (*own, *named)))


async def _listed(cluster: Cluster, namespace: str) -> tuple[JsonObject, ...]:
    try:
        return (await cluster.list(EVENTS, namespace=namespace)).items
    except ClusterError:
        return ()


def _is_about(event: JsonObject, resource: Ref) -> bool:
    regarding = mapping_in(event, "regarding")
    return (text_in(regarding, "kind"), text_in(regarding, "name")) == (
        resource.kind,
        resource.name,
    )


def _line(event: JsonObject) -> Line:
    text = f"{text_in(event, 'type')} {text_in(event, 'reason')}: {text_in(event, 'note')}"
    last = text_in(mapping_in(event, "series"), "lastObservedTime")
    moment = known_instant(last or text_in(event, "eventTime"))
    return Line(EpochNanos(0) if moment is None else moment, EVENT, text)


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
