"""The operator over a real API server, with thousands of resources: `make bench-operator`.

1. 10,000 new objects of the flights example, until the last has its final status; rest; a restart.
2. 5,000 outputs, of which twenty a second are changed: from the change to the status.
3. 500 runs in flight: what the operator asks the API server for while nothing happens.

The operator is a process of its own. What it asked for, and when that was answered, is what the
API server wrote down.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from figures import Figure, publish, tell
from fleet import flights, suspended
from ground import Ground, Working, ground
from support.jobdouble import JobDouble
from support.jobscripts import Hold, completes, hangs_in

from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.objects import ApplicationState

Raw = dict[str, Any]

A_NAMESPACE = 500
"""Objects in a namespace, about."""
SETTLED_SECONDS = 90.0
RESTART_SECONDS = 20.0
MEMORY_MB = 350.0
IDLE_PERCENT = 2.0
CHANGED_SECONDS = 3.0
QUIET = 3.0
"""Seconds that what follows a change is given before one counts."""


def main() -> int:
    """Measure, publish; fail when a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--outputs", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=20.0, help="changes a second")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0, help="of changes, and of rest")
    parser.add_argument("--only", choices=STORIES, nargs="*", default=list(STORIES))
    parser.add_argument("--print", action="store_true", help="leave docs/benchmarks.md as it is")
    arguments = parser.parse_args()
    figures = asyncio.run(measured(arguments))
    if arguments.print:
        tell(figures)
    else:
        publish("Operator", "make bench-operator", figures)
    return 0 if all(figure.ok for figure in figures) else 1


async def measured(arguments: argparse.Namespace) -> list[Figure]:
    figures: list[Figure] = []
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            async with ground(Path(folder)) as place:
                figures += await STORIES[name](place, arguments)
    return figures


async def fleet_story(place: Ground, arguments: argparse.Namespace) -> list[Figure]:
    """New objects, rest, and a restart."""
    count = arguments.objects
    namespaces = await place.namespaces(1 + count // A_NAMESPACE)
    with place.operator() as working:
        await working.settled()
        began, used = time.time(), working.cpu
        await place.apply(fleet(namespaces, count))
        applied = time.time()
        await working.settled(count)
        assert not await place.unsettled()
        writes = [request for request in place.requests(began) if request.is_write]
        created = [
            Figure(f"{count} objects, applied, seconds", round(applied - began, 1)),
            Figure.at_most(
                f"{count} new objects, all with their final status, seconds",
                max(write.at for write in writes) - began,
                SETTLED_SECONDS,
            ),
            Figure(f"{count} new objects, CPU seconds", round(working.cpu - used, 1)),
            Figure(f"{count} new objects, writes an object", round(len(writes) / count, 2)),
            Figure.at_most(f"{count} new objects, peak memory, MB", working.peak, MEMORY_MB),
            await idle(working, arguments.seconds, f"{count} objects"),
        ]
    with place.operator() as working:
        await working.settled(count)
        settled = time.time()
        used = working.cpu
        await asyncio.sleep(QUIET)
        writes = [request for request in place.requests(working.began) if request.is_write]
        return [
            *created,
            Figure.at_most(
                f"restart with {count} objects, settled, seconds",
                settled - working.began,
                RESTART_SECONDS,
            ),
            Figure(f"restart with {count} objects, CPU seconds", round(used, 1)),
            Figure.at_most(f"restart with {count} objects, writes", len(writes), 0),
            Figure.at_most(f"restart with {count} objects, peak memory, MB", working.peak, 350),
        ]


def fleet(namespaces: list[str], count: int) -> Iterator[tuple[str, Raw]]:
    """Copies of the flights example, dealt out to namespaces; nothing runs."""

    def copies() -> Iterator[tuple[str, Raw]]:
        for number in itertools.count():
            namespace = namespaces[number % len(namespaces)]
            yield from ((namespace, suspended(raw)) for raw in flights(number))

    return itertools.islice(copies(), count)


async def idle(working: Working, seconds: float, about: str) -> Figure:
    await asyncio.sleep(QUIET)
    used = working.cpu
    await asyncio.sleep(seconds)
    percent = (working.cpu - used) / seconds * 100
    return Figure.at_most(f"{about}, at rest, % of a core", percent, IDLE_PERCENT)


async def changes_story(place: Ground, arguments: argparse.Namespace) -> list[Figure]:
    """Outputs, of which some are changed every second."""
    count, rate = arguments.outputs, arguments.rate
    namespaces = await place.namespaces(1 + count // A_NAMESPACE)
    declared = list(outputs(namespaces, count, is_suspended=True))
    await place.apply(declared)
    changed = [pair for pair in declared if pair[1]["kind"] == "OutputDataset"]
    with place.operator() as working:
        await working.settled(len(declared))
        used, began = working.cpu, time.time()
        asked = await change(place, changed, rate, arguments.seconds)
        lasted = time.time() - began
        used = working.cpu - used
        await working.settled()
        await asyncio.sleep(QUIET)
        peak = working.peak
    assert not await place.unsettled()
    answered: dict[str, float] = {}
    for request in place.requests(began):
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
        Figure.at_most(f"{count} outputs, peak memory, MB", peak, MEMORY_MB),
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
    place: Ground, declared: list[tuple[str, Raw]], rate: float, seconds: float
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
            place.cluster.patch(OURS["OutputDataset"], namespace, name, patch)
        )
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return asked


async def runs_story(place: Ground, arguments: argparse.Namespace) -> list[Figure]:
    """Runs in flight that are left alone, and then end."""
    count = arguments.runs
    namespaces = await place.namespaces(1 + count // A_NAMESPACE)
    await place.apply(outputs(namespaces, count, is_suspended=False))
    script = (*hangs_in(ApplicationState.RUNNING), Hold(), *completes()[3:])
    double = JobDouble(place.cluster, script)
    limits = {"runs": count, "runsPerNamespace": count}
    with place.operator(limits=limits) as working:
        await working.settled()
        await play(place, double, count, "Running")
        await working.settled()
        await asyncio.sleep(QUIET)
        began, used = time.time(), working.cpu
        await asyncio.sleep(arguments.seconds)
        rest = working.cpu - used
        about_runs = [
            request
            for request in place.requests(began)
            if request.resource != "leases" and request.verb != "watch"
        ]
        double.release()
        ended = time.time()
        await play(place, double, count, None)
        ended = time.time() - ended
        peak = working.peak
    return [
        Figure.at_most(
            f"{count} runs in flight, requests in {arguments.seconds:g} s, watches and Lease aside",
            len(about_runs),
            0,
        ),
        Figure(f"{count} runs in flight, % of a core", round(rest / arguments.seconds * 100, 2)),
        Figure(
            f"{count} runs, from the end of the jobs to their statuses, seconds", round(ended, 1)
        ),
        Figure.at_most(f"{count} runs in flight, peak memory, MB", peak, MEMORY_MB),
    ]


async def play(place: Ground, double: JobDouble, count: int, phase: str | None) -> None:
    """Let jobs go on until that many resources tell of them so."""
    while True:
        await double.step()
        listing = await place.cluster.list(OURS["OutputDataset"])
        told: list[Any] = [stored.get("status", {}) for stored in listing.items]
        phases = [status.get("currentRun", {}).get("phase") for status in told]
        if phases.count(phase) >= count:
            return
        await asyncio.sleep(0.2)


STORIES = {"fleet": fleet_story, "changes": changes_story, "runs": runs_story}


if __name__ == "__main__":
    raise SystemExit(main())
