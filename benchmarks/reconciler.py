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

from figures import Figure, print_figures, publish
from fleet import flights, suspended
from operatorbench import Bench, OperatorUnderTest, running_bench
from support.operator.jobdouble import JobDouble
from support.operator.jobscripts import Hold, completes, hangs_in

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
    parser.add_argument("--only", choices=SCENARIOS, nargs="*", default=list(SCENARIOS))
    parser.add_argument("--print", action="store_true", help="leave docs/benchmarks.md as it is")
    arguments = parser.parse_args()
    figures = asyncio.run(measured(arguments))
    if arguments.print:
        print_figures(figures)
    else:
        publish("Operator", "make bench-operator", figures)
    return 0 if all(figure.ok for figure in figures) else 1


async def measured(arguments: argparse.Namespace) -> list[Figure]:
    figures: list[Figure] = []
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            async with running_bench(Path(folder)) as bench:
                figures += await SCENARIOS[name](bench, arguments)
    return figures


async def fleet_scenario(bench: Bench, arguments: argparse.Namespace) -> list[Figure]:
    """New objects, rest, and a restart."""
    count = arguments.objects
    namespaces = await bench.namespaces(1 + count // A_NAMESPACE)
    with bench.operator() as operator:
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
            Figure.at_most(
                f"{count} new objects, all with their final status, seconds",
                max(write.at for write in writes) - began,
                SETTLED_SECONDS,
            ),
            Figure(f"{count} new objects, CPU seconds", round(operator.cpu - used, 1)),
            Figure(f"{count} new objects, writes an object", round(len(writes) / count, 2)),
            Figure.at_most(f"{count} new objects, peak memory, MB", operator.peak, MEMORY_MB),
            await idle(operator, arguments.seconds, f"{count} objects"),
        ]
    with bench.operator() as operator:
        await operator.settled(count)
        settled = time.time()
        used = operator.cpu
        await asyncio.sleep(QUIET)
        writes = [request for request in bench.requests(operator.began) if request.is_write]
        return [
            *created,
            Figure.at_most(
                f"restart with {count} objects, settled, seconds",
                settled - operator.began,
                RESTART_SECONDS,
            ),
            Figure(f"restart with {count} objects, CPU seconds", round(used, 1)),
            Figure.at_most(f"restart with {count} objects, writes", len(writes), 0),
            Figure.at_most(f"restart with {count} objects, peak memory, MB", operator.peak, 350),
        ]


def fleet(namespaces: list[str], count: int) -> Iterator[tuple[str, Raw]]:
    """Copies of the flights example, dealt out to namespaces; nothing runs."""

    def copies() -> Iterator[tuple[str, Raw]]:
        for number in itertools.count():
            namespace = namespaces[number % len(namespaces)]
            yield from ((namespace, suspended(raw)) for raw in flights(number))

    return itertools.islice(copies(), count)


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
    with bench.operator() as operator:
        await operator.settled(len(declared))
        used, began = operator.cpu, time.time()
        asked = await change(bench, changed, rate, arguments.seconds)
        lasted = time.time() - began
        used = operator.cpu - used
        await operator.settled()
        await asyncio.sleep(QUIET)
        peak = operator.peak
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
    """Runs in flight that do not change for a while, and then end."""
    count = arguments.runs
    namespaces = await bench.namespaces(1 + count // A_NAMESPACE)
    await bench.apply(outputs(namespaces, count, is_suspended=False))
    script = (*hangs_in(ApplicationState.RUNNING), Hold(), *completes()[3:])
    double = JobDouble(bench.cluster, script)
    limits = {"runs": count, "runsPerNamespace": count}
    with bench.operator(limits=limits) as operator:
        await operator.settled()
        await play(bench, double, count, "Running")
        await operator.settled()
        await asyncio.sleep(QUIET)
        began, used = time.time(), operator.cpu
        await asyncio.sleep(arguments.seconds)
        rest = operator.cpu - used
        about_runs = [
            request
            for request in bench.requests(began)
            if request.resource != "leases" and request.verb != "watch"
        ]
        double.release()
        ended = time.time()
        await play(bench, double, count, None)
        ended = time.time() - ended
        peak = operator.peak
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


async def play(bench: Bench, double: JobDouble, count: int, phase: str | None) -> None:
    """Let jobs continue until that many resources show this phase of their run."""
    while True:
        await double.step()
        listing = await bench.cluster.list(OURS["OutputDataset"])
        statuses: list[Any] = [stored.get("status", {}) for stored in listing.items]
        phases = [status.get("currentRun", {}).get("phase") for status in statuses]
        if phases.count(phase) >= count:
            return
        await asyncio.sleep(0.2)


SCENARIOS = {"fleet": fleet_scenario, "changes": changes_scenario, "runs": runs_scenario}


if __name__ == "__main__":
    raise SystemExit(main())
