"""The operator over a real API server, with thousands of resources: `make bench-operator`.

1. 10,000 new objects of the flights example, until the last has its final status; rest; a restart.
2. 5,000 outputs, of which twenty a second are changed: from the change to the status.
3. 500 runs in flight: what the operator asks the API server for while nothing happens; then all
   end in the same second. As many bare patches show what the API server needs for the writes.
4. 50 runs in flight that end one after the other: how late the statuses are, and what a run costs.
5. 100 runs that end together while the API server is slow, fails, and is cut off.

The operator is a process of its own. What it asked for, and when that was answered, is what the
API server wrote down.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from figures import Figure, print_figures, publish
from fleet import examples, flights, suspended
from operatorbench import (
    AT_ONCE,
    LEASES,
    POLL_SECONDS,
    Bench,
    OperatorUnderTest,
    running_bench,
)
from support.operator.faultyproxy import Call, Fault, running_proxy
from support.operator.jobdouble import Hold, JobDouble, Reported, State, hangs_in, published
from support.operator.scriptedapi import write_plain_kubeconfig

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import OURS
from snaploom_operator.objects import ApplicationState
from snaploom_operator.settings import OperatorSettings

Raw = dict[str, Any]

OF_GOALS = 10_000
"""Objects that the goals are about; of larger fleets it is shown what more of them cost."""
A_NAMESPACE = 500
"""Objects in a namespace, about."""
SETTLED_SECONDS = 45.0
MEMORY_MB = 240.0
REQUESTED_MB = 256.0
"""What the chart requests; 5,000 outputs that keep changing must fit in it."""
IDLE_PERCENT = 0.5
WRITES = 1.1
"""Writes of a new object, until its status is final."""
RESTARTS = 4
"""Restarts of each version, in turns; their medians count."""
RATIO = 1.5
"""How much longer a restart may take than of the earlier version, and how much more CPU."""
ENDED = 10.0
"""Seconds from the first of many ends to the last status."""
LATE = 1.0
"""Seconds from the end of a job to its status, where runs end one after the other."""
MOST_REQUESTS = 10
"""Requests that a run may cost the API server; each is listed."""
WHY = {
    "create configmaps": "its Bundle, which its job reads",
    "create events": "it started, it ended",
    "create sparkapplications": "its job",
    "patch outputdatasets/status": "Submitting, Submitted, taken up, Running, ended",
}
"""What each request of a run is for; any other one is a surprise."""
RECOVERED = 60.0
"""Seconds from the last end to the last status where every fifth request is spoilt."""
STATUSES = "outputdatasets/status"
NOT_OF_RUNS = (LEASES, "datasources/status", "datarelationships/status")
WORKERS = OperatorSettings().workers
PAUSE = 0.2
"""Seconds between two steps of jobs."""
CHANGED_SECONDS = 3.0
FLOODING, LATE_PROBE = 50, 3.0
"""Clients that ask for metrics in a loop, and the seconds in which probes are answered beside them:
the Lease's deadline is ten."""
QUIET = 3.0
"""Seconds that what follows a change is given before one counts."""


def main() -> int:
    """Measure, publish; fail when a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--outputs", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=20.0, help="changes a second")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--flights", type=int, default=50, help="runs that end one by one")
    parser.add_argument("--chaos", type=int, default=100, help="runs on a rough API server")
    parser.add_argument("--seconds", type=float, default=60.0, help="of changes, and of rest")
    parser.add_argument("--before", help="Python of an earlier version, to compare restarts")
    parser.add_argument("--only", choices=(FLEET, *SCENARIOS), nargs="*")
    parser.add_argument("--print", action="store_true", help="leave the history as it is")
    arguments = parser.parse_args()
    arguments.only = arguments.only or [FLEET, *SCENARIOS]
    figures = asyncio.run(measured(arguments))
    if arguments.print:
        print_figures(figures)
    else:
        publish("Operator", "make bench-operator", figures)
    return 0 if all(figure.ok for figure in figures) else 1


async def measured(arguments: argparse.Namespace) -> list[Figure]:
    figures: list[Figure] = []
    for name in arguments.only:
        if name == FLEET:
            figures += await fleets(arguments.objects, arguments.seconds, arguments.before)
            continue
        async with a_bench() as bench:
            figures += await SCENARIOS[name](bench, arguments)
    return figures


@asynccontextmanager
async def a_bench() -> AsyncIterator[Bench]:
    """A cluster of its own for each scenario."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_bench(Path(folder)) as bench:
            yield bench


async def fleets(counts: list[int], seconds: float, before: str | None) -> list[Figure]:
    """Fleets of several sizes, and what each further 10,000 objects cost."""
    found = []
    for count in counts:
        async with a_bench() as bench:
            found.append(await fleet_scenario(bench, count, seconds, before))
    further = slopes(found[0], found[-1], counts[-1] - counts[0]) if len(counts) > 1 else []
    return [*itertools.chain(*found), *further]


async def fleet_scenario(
    bench: Bench, count: int, seconds: float, before: str | None
) -> list[Figure]:
    """New objects, rest, and restarts; of an earlier version too, in turns."""
    namespaces = await bench.namespaces(1 + count // A_NAMESPACE)
    async with bench.operator() as operator:
        await operator.settled()
        began, used = time.time(), operator.cpu
        await bench.apply(fleet(namespaces, count))
        applied = time.time()
        await operator.settled(count)
        while await bench.unsettled():  # events of the last objects may still be on their way
            await operator.settled()
        writes = [request for request in bench.requests(began) if request.is_write]
        created = [
            Figure(f"{count} objects, applied, seconds", round(applied - began, 1)),
            of_size(
                count,
                "new objects, all with their final status, seconds",
                max(write.at for write in writes) - began,
                SETTLED_SECONDS,
            ),
            Figure(f"{count} new objects, CPU seconds", round(operator.cpu - used, 1)),
            Figure(
                f"{count} new objects, CPU ms an object",
                round((operator.cpu - used) / count * 1000, 2),
            ),
            Figure.at_most(f"{count} new objects, writes an object", len(writes) / count, WRITES),
            of_size(count, "new objects, peak memory, MB", operator.peak, MEMORY_MB),
            await idle(operator, seconds, f"{count} objects"),
        ]
    ours, theirs = [], []
    for _ in range(RESTARTS if before else 1):
        if before:
            theirs.append(await restarted(bench, count, before))
        ours.append(await restarted(bench, count))
    seconds_, used, peak, written = map(median, zip(*ours, strict=True))
    name = f"{count} objects, restarted"
    found = [
        *created,
        Figure(f"{name} and settled, seconds", round(seconds_, 1)),
        Figure(f"{name}, CPU seconds", round(used, 1)),
        Figure(f"{name}, CPU ms an object", round(used / count * 1000, 2)),
        Figure.at_most(f"{name}, writes", written, 0),
        of_size(count, "objects, restarted, peak memory, MB", peak, MEMORY_MB),
    ]
    if theirs:
        earlier = [median(each) for each in zip(*theirs, strict=True)]
        found += [
            Figure(f"{name} and settled, the version before, seconds", round(earlier[0], 1)),
            Figure(f"{name}, the version before, CPU seconds", round(earlier[1], 1)),
            Figure(f"{name}, the version before, peak memory, MB", round(earlier[2], 1)),
            Figure.at_most(f"{name} and settled, ratio to before", seconds_ / earlier[0], RATIO),
            Figure.at_most(f"{name}, CPU, ratio to before", used / earlier[1], RATIO),
        ]
    return found


async def restarted(
    bench: Bench, count: int, python: str | None = None
) -> tuple[float, float, float, float]:
    """A restart with nothing to do: seconds, CPU seconds, peak memory in MB, writes."""
    async with bench.operator(python=python) as operator:
        await operator.settled(count)
        seconds = time.time() - operator.began
        await asyncio.sleep(QUIET)  # until the library's own lists are through
        writes = [request for request in bench.requests(operator.began) if request.is_write]
        return seconds, operator.cpu, operator.peak, len(writes)


def of_size(count: int, name: str, value: float, limit: float) -> Figure:
    """A figure that has a goal for as many objects as the goals are about."""
    if count > OF_GOALS:
        return Figure(f"{count} {name}", round(value, 1))
    return Figure.at_most(f"{count} {name}", value, limit)


def slopes(first: list[Figure], last: list[Figure], further: int) -> list[Figure]:
    """What each further 10,000 objects add to the figures that grow with them."""
    return [
        Figure(
            f"each further {OF_GOALS} {small.name.partition(' ')[2]}",
            round((float(large.value) - float(small.value)) / further * OF_GOALS, 1),
        )
        for small, large in zip(first, last, strict=True)
        if small.name.endswith(("seconds", "MB"))
    ]


def fleet(namespaces: list[str], count: int) -> Iterator[tuple[str, Raw]]:
    """Copies of the flights example, dealt out to namespaces; nothing runs.

    The last ones are physical sources only: a resource that refers to one that is missing would
    have its status changed later, by the time that passes.
    """
    copies = ((number, raw) for number in itertools.count() for raw in flights(number))
    whole = count - count % len(examples())
    rest = (copy for copy in copies if "hdfsLike" in copy[1]["spec"])
    found = itertools.chain(itertools.islice(copies, whole), itertools.islice(rest, count - whole))
    return ((namespaces[number % len(namespaces)], suspended(raw)) for number, raw in found)


async def idle(operator: OperatorUnderTest, seconds: float, about: str) -> Figure:
    await asyncio.sleep(QUIET)
    used = operator.cpu
    await asyncio.sleep(seconds)
    percent = (operator.cpu - used) / seconds * 100
    return Figure.at_most(f"{about}, at rest, % of a core", percent, IDLE_PERCENT)


async def changes_scenario(bench: Bench, arguments: argparse.Namespace) -> list[Figure]:
    """Outputs, of which some are changed every second."""
    count, rate = arguments.outputs, arguments.rate
    namespaces = await bench.namespaces(1 + count // A_NAMESPACE)
    declared = list(outputs(namespaces, count, is_suspended=True))
    await bench.apply(declared)
    changed = [pair for pair in declared if pair[1]["kind"] == "OutputDataset"]
    async with bench.operator() as operator:
        await operator.settled(len(declared))
        used, began = operator.cpu, time.time()
        asked = await change(bench, changed, rate, arguments.seconds)
        lasted = time.time() - began
        used = operator.cpu - used
        await operator.settled()
        await asyncio.sleep(QUIET)
        peak = operator.peak
        late_probe = await operator.late_under_flood(FLOODING, arguments.seconds)
    assert not await bench.unsettled()
    answered: dict[str, float] = {}
    for request in bench.requests(began):
        if request.resource == "outputdatasets/status" and request.name in asked:
            answered.setdefault(request.name, request.at)
    late = [answered[name] - at for name, at in asked.items()]
    return [
        Figure(f"{count} outputs, changes a second", round(len(asked) / lasted, 1)),
        Figure.at_most(
            f"{count} outputs, spec change to status, p95, seconds",
            quantiles(late, n=100)[94],
            CHANGED_SECONDS,
        ),
        Figure(
            f"{count} outputs, spec change to status, median, seconds",
            round(quantiles(late, n=100)[49], 3),
        ),
        Figure(f"{count} outputs, CPU seconds a change", round(used / len(asked), 4)),
        Figure.at_most(f"{count} outputs, peak memory, MB", peak, REQUESTED_MB),
        Figure.at_most(
            f"{count} outputs, {FLOODING} clients ask for metrics in a loop, longest answer to a "
            "probe, seconds",
            late_probe,
            LATE_PROBE,
        ),
    ]


def outputs(namespaces: list[str], count: int, *, is_suspended: bool) -> Iterator[tuple[str, Raw]]:
    """Outputs of the same sources, as many in each namespace; sources first."""
    for number, namespace in enumerate(namespaces):
        example = flights(number)
        output = next(raw for raw in example if raw["kind"] == "OutputDataset")
        yield from (
            (namespace, raw)
            for raw in example
            if raw["kind"] not in ("OutputDataset", "SkippingIndex")
        )
        folder = output["spec"]["outputFolder"]
        for which in range(number, count, len(namespaces)):
            named = {"name": f"flights-{which}"}
            spec = {
                **output["spec"],
                "outputFolder": {**folder, "folderUri": f"file:///out/{which}/"},
            }
            raw = {**output, "metadata": named, "spec": spec}
            yield namespace, suspended(raw) if is_suspended else raw


async def change(
    bench: Bench, declared: list[tuple[str, Raw]], rate: float, seconds: float
) -> dict[str, float]:
    """Change as many specs a second, each once; when each change was sent, by name."""
    asked: dict[str, float] = {}
    began = time.monotonic()
    under_way: set[asyncio.Task[object]] = set()
    for number, (namespace, raw) in enumerate(declared[: int(rate * seconds)]):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        name = raw["metadata"]["name"]
        patch: Raw = {"spec": {"dataModel": {"maxDepth": 9}}}
        asked[f"{namespace}/{name}"] = time.time()
        task: asyncio.Task[object] = asyncio.create_task(
            bench.cluster.patch(OURS["OutputDataset"], namespace, name, patch)
        )
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return asked


async def runs_scenario(bench: Bench, arguments: argparse.Namespace) -> list[Figure]:
    """Runs in flight that do not change for a while, and then end in the same second."""
    count, seconds = arguments.runs, arguments.seconds
    async with runs_in_flight(bench, count) as (operator, double):
        began, used = time.time(), operator.cpu
        await asyncio.sleep(seconds)
        rest = operator.cpu - used
        about_runs = [
            request
            for request in bench.requests(began)
            if request.resource != LEASES and request.verb != "watch"
        ]
        first, used = time.time(), operator.cpu
        double.release()
        last = max((await double.end(at_once=AT_ONCE)).values())
        await ended(bench, count)
        await operator.settled()
        used = operator.cpu - used
        writes = [request for request in bench.requests(first) if request.is_write]
        peak = operator.peak
    shown = [write for write in writes if write.resource == STATUSES]
    lasted = max(write.at for write in shown) - first
    patched = await bare_patches(bench, len(shown))
    name = f"{count} runs end at once"
    return [
        Figure.at_most(
            f"{count} runs in flight, requests in {seconds:g} s, watches and Lease aside",
            len(about_runs),
            0,
        ),
        Figure(f"{count} runs in flight, % of a core", round(rest / seconds * 100, 2)),
        Figure(f"{name}, their ends written, seconds", round(last - first, 1)),
        Figure.at_most(f"{name}, from the first end to the last status, seconds", lasted, ENDED),
        Figure(
            f"{name}, from the first end to the last event, seconds",
            round(max(write.at for write in writes) - first, 1),
        ),
        Figure(f"{name}, CPU seconds", round(used, 1)),
        Figure(f"{name}, writes of statuses", len(shown)),
        Figure(f"{name}, writes of events", len(writes) - len(shown)),
        Figure(f"{name}, as many bare patches of statuses, seconds", round(patched, 1)),
        Figure(f"{name}, ratio to bare patches", round(lasted / patched, 2)),
        Figure.at_most(f"{count} runs in flight, peak memory, MB", peak, MEMORY_MB),
    ]


async def bare_patches(bench: Bench, count: int) -> float:
    """Seconds in which the API server takes so many patches of statuses and nothing else.

    As many at a time as the operator has workers.
    """
    listing = await bench.cluster.list(OURS["OutputDataset"])
    targets = itertools.islice(itertools.cycle(listing.items), count)
    async with open_cluster(bench.kubeconfig) as cluster:

        async def work() -> None:
            for number, stored in enumerate(targets):
                metadata: Any = stored["metadata"]
                status: Any = stored["status"]
                last = {**status["lastRun"], "message": f"patch {number}"}
                patch: Raw = {"status": {"conditions": status["conditions"], "lastRun": last}}
                await cluster.patch(
                    OURS["OutputDataset"],
                    metadata["namespace"],
                    metadata["name"],
                    patch,
                    subresource="status",
                )

        began = time.time()
        await asyncio.gather(*(work() for _ in range(WORKERS)))
        return time.time() - began


async def latency_scenario(bench: Bench, arguments: argparse.Namespace) -> list[Figure]:
    """Fewer runs in flight, which end one after the other; and all that a run asks for."""
    count = arguments.flights
    began = time.time()
    async with runs_in_flight(bench, count) as (operator, double):
        double.release()
        at: dict[str, float] = {}
        for application in tuple(double.seen):
            at |= await double.end(application.name)
            await asyncio.sleep(PAUSE)
        await ended(bench, count)
        await operator.settled()
    shown: dict[str, float] = {}
    for request in bench.requests(began):
        if request.resource == STATUSES and request.verb == "patch":
            shown[request.name] = request.at
    late = [max(0.0, shown[name] - at[name]) for name in at]
    about_runs = Counter(
        f"{request.verb} {request.resource}"
        for request in bench.requests(began)
        if request.verb not in ("list", "watch") and request.resource not in NOT_OF_RUNS
    )
    return [
        Figure.at_most(
            f"{count} runs in flight, from the end of a job to its status, p95, seconds",
            quantiles(late, n=100)[94],
            LATE,
        ),
        Figure.at_most(
            "requests a run, from submit to status", about_runs.total() / count, MOST_REQUESTS
        ),
        *(
            Figure(
                f"requests a run, {what}: {WHY.get(what, 'a surprise')}", round(number / count, 2)
            )
            for what, number in sorted(about_runs.items())
        ),
    ]


async def chaos_scenario(bench: Bench, arguments: argparse.Namespace) -> list[Figure]:
    """Runs that end together while the API server is slow, fails, and is cut off."""
    count = arguments.chaos
    async with running_proxy(bench.plane.kubeconfig, rough) as proxy:
        kubeconfig = write_plain_kubeconfig(bench.plane.folder / "proxy.kubeconfig", proxy.url)
        async with runs_in_flight(bench, count, kubeconfig) as (_, double):
            double.release()
            last = max((await double.end(at_once=AT_ONCE)).values())
            await ended(bench, count)
            lasted = time.time() - last
        spoilt = len(proxy.spoilt) / len(proxy.calls) * 100
        created = len(proxy.created)
    statuses = await statuses_of(bench)
    succeeded = sum(status["lastRun"]["phase"] == "Succeeded" for status in statuses)
    name = f"{count} runs, API server slowed and cut"
    return [
        Figure(f"{name}, % of requests spoilt", round(spoilt, 1)),
        Figure(f"{name}, applications created", created, f"= {count}", created == count),
        Figure(f"{name}, runs succeeded", succeeded, f"= {count}", succeeded == count),
        Figure.at_most(f"{name}, from the last end to the last status, seconds", lasted, RECOVERED),
    ]


def rough(call: Call) -> Fault | None:
    """What goes wrong with a call: one in five is spoilt, and each watch breaks twice."""
    if call.verb == "watch":
        return {1: Fault.DROPPED, 2: Fault.EXPIRED_INSIDE}.get(call.occurrence)
    if call.what == LEASES or call.verb == "list":  # or it ends, as one should that is cut off
        return Fault.SLOW if call.occurrence % 20 == 3 else None
    found = {3: Fault.SLOW, 7: Fault.LOST_REQUEST, 11: Fault.BROKEN, 15: Fault.PATIENCE}
    if call.is_write:
        found[19] = Fault.LOST_ANSWER
    return found.get(call.occurrence % 20)


@asynccontextmanager
async def runs_in_flight(
    bench: Bench, count: int, kubeconfig: Path | None = None
) -> AsyncIterator[tuple[OperatorUnderTest, JobDouble]]:
    """The operator with so many runs, whose jobs all run and end when the double is released.

    Args:
        bench: the cluster.
        count: runs.
        kubeconfig: how the operator reaches the cluster; None for its own.
    """
    places = await bench.namespaces(1 + count // A_NAMESPACE)
    await bench.apply(outputs(places, count, is_suspended=False))
    ending = (Reported(published()), State(ApplicationState.COMPLETED))
    double = JobDouble(bench.cluster, (*hangs_in(ApplicationState.RUNNING), Hold(), *ending))
    limits = {"runs": count, "runsPerNamespace": count}
    async with bench.operator(kubeconfig, limits=limits) as operator:
        await operator.settled()
        while (
            sum(run_of(each).get("phase") == "Running" for each in await statuses_of(bench)) < count
        ):
            await double.step(at_once=AT_ONCE)
            await asyncio.sleep(PAUSE)
        await operator.settled()
        await asyncio.sleep(QUIET)
        yield operator, double


async def ended(bench: Bench, count: int) -> None:
    """Wait until that many resources show the end of their run."""
    while True:
        statuses = await statuses_of(bench)
        if sum("lastRun" in each and not run_of(each) for each in statuses) >= count:
            return
        await asyncio.sleep(POLL_SECONDS)


async def statuses_of(bench: Bench) -> list[Any]:
    listing = await bench.cluster.list(OURS["OutputDataset"])
    return [stored.get("status", {}) for stored in listing.items]


def run_of(status: Any) -> Any:
    """The run in flight of a resource; empty without one."""
    return status.get("currentRun", {})


FLEET = "fleet"
SCENARIOS = {
    "changes": changes_scenario,
    "runs": runs_scenario,
    "latency": latency_scenario,
    "chaos": chaos_scenario,
}


if __name__ == "__main__":
    raise SystemExit(main())
