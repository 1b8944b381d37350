"""What an operator lives through, the same over any cluster and with any fault.

A story holds what people do and what is waited for; the stage that it runs on decides which
cluster that is, what goes wrong, and how time passes. However it was run, it must end the same:
`Ending`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from support.declared.declarations import document, files, model, output, spoilt
from support.operator.jobdouble import (
    Chooser,
    Hold,
    Script,
    completes,
    fails,
    in_turn,
    indexed,
    published,
    removed,
    report,
)
from support.operator.operatorharness import Predicate, condition, has_reason, is_ready

from snaploom.models.report import RunPhase

Raw = dict[str, Any]

WIDE = "OutputDataset/wide"
NARROW = "SkippingIndex/narrow"
DAY = 86_400.0
BEGINNING = "2026-01-01T00:00:00Z"
"""When every story begins, by the operator's clock."""


class Stage(Protocol):
    """Where a story runs; see `OperatorHarness`."""

    async def apply(self, *declarations: Any) -> None: ...

    async def annotate(self, identity: str, **annotations: str | None) -> None: ...

    async def delete(self, identity: str) -> None: ...

    async def get(self, identity: str) -> Raw: ...

    async def lose_status(self, identity: str) -> None: ...

    async def wait_for(self, identity: str, predicate: Predicate) -> Raw: ...

    async def pass_time(self, seconds: float) -> None: ...

    async def restart(self) -> None: ...

    def release(self) -> None: ...


@dataclass(frozen=True)
class Story:
    steps: Callable[[Stage], Awaitable[None]]
    script: Callable[[], Script | Chooser]
    """What becomes of the applications, made anew for each run of the story."""
    runs: int
    """Applications that it takes, one a run."""
    about: tuple[str, ...] = (WIDE,)
    """Resources whose end is compared."""


@dataclass(frozen=True)
class Ending:
    """How a story ended, without names and times, which differ with every run of it."""

    runs: int
    """Applications that were created."""
    names: int
    """Names that they bore."""
    statuses: tuple[object, ...]
    """Summaries of the statuses."""


async def ending(story: Story, stage: Stage, created: list[str]) -> Ending:
    """How a story ended.

    Args:
        story: the story.
        stage: where it was run.
        created: names of the applications, one for each that was created.
    """
    statuses = [_summary(await stage.get(identity)) for identity in story.about]
    return Ending(len(created), len(set(created)), tuple(statuses))


def _summary(raw: Raw) -> object:
    if not raw:
        return "gone"
    status = raw["status"]
    last = status["lastRun"]
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    return {
        "conditions": conditions,
        "isUpToDate": status["observedGeneration"] == raw["metadata"]["generation"],
        "lastRun": (last["phase"], last["attempt"], last["action"]),
        "isAtWork": "currentRun" in status,
        "snapshots": status.get("snapshotCount"),
        "sequence": status.get("manifest", {}).get("sequence"),
        "realised": status.get("realised"),
        "state": status.get("state"),
    }


def wide(**run: Any) -> list[Raw]:
    *others, declared = model()
    return [*others, spoilt(declared, "spec.run", run)] if run else [*others, declared]


def is_at_rest(raw: Raw) -> bool:
    """Whether a resource is Ready, and no run of it is in flight."""
    return is_ready(raw) and "currentRun" not in raw["status"]


def has_published(sequence: int) -> Predicate:
    """Whether an output has published so much, and is at rest."""
    return lambda raw: is_at_rest(raw) and raw["status"]["manifest"]["sequence"] == sequence


def _held(script: Script) -> Script:
    """A script that waits for `release` while the job is at work."""
    return (*script[:4], Hold(), *script[4:])


def _fails_first() -> Chooser:
    """A retry waits from the end that the Report has: by the clock of the stories."""
    times = {"started_at": BEGINNING, "finished_at": BEGINNING}
    broken = report(
        RunPhase.FAILED, reason="SourceNotReadable", message="away", retryable=True, **times
    )
    return in_turn(fails(broken), completes())


def _twice(first: Callable[[Script], Script] = tuple) -> Chooser:
    second = published("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z", sequence=2)
    return in_turn(first(completes(published(sequence=1))), completes(second))


async def _publish(stage: Stage) -> None:
    await stage.apply(*wide())
    await stage.wait_for(WIDE, is_at_rest)


async def _retry(stage: Stage) -> None:
    await stage.apply(
        *wide(retry={"limit": 2, "backoffSeconds": 7_200, "maxBackoffSeconds": 7_200})
    )
    await stage.wait_for(WIDE, has_reason("RunWillBeRetried"))
    await stage.pass_time(7_300)
    await stage.wait_for(WIDE, is_at_rest)


async def _replace(stage: Stage) -> None:
    await stage.apply(*wide(concurrencyPolicy="Replace"))
    await stage.wait_for(WIDE, has_reason("RunRunning"))
    await stage.apply(files("customer", format="orc"))
    await stage.wait_for(WIDE, is_at_rest)


async def _tick(stage: Stage) -> None:
    await stage.apply(*wide(schedule={"cron": "0 1 * * *", "timeZone": "UTC"}))
    await stage.wait_for(WIDE, has_published(1))
    await stage.pass_time(DAY)
    await stage.wait_for(WIDE, has_published(3))


async def _index(stage: Stage) -> None:
    spec = {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": "customer_id"}],
        "store": {"parquet": {"location": "/indexes/"}},
        "refresh": {"trigger": "ON_PUBLISH"},
    }
    await stage.apply(document("SkippingIndex", "narrow", spec), *wide())
    built = await stage.wait_for(NARROW, is_at_rest)
    await stage.annotate(WIDE, run="again")
    await stage.wait_for(WIDE, has_published(3))

    def is_refreshed(raw: Raw) -> bool:
        status = raw.get("status", {})
        is_another = status.get("lastRun", {}).get("id") != built["status"]["lastRun"]["id"]
        return is_at_rest(raw) and is_another

    await stage.wait_for(NARROW, is_refreshed)


def _index_script() -> Chooser:
    outputs, indexes = _twice(), in_turn(completes(indexed()))
    return lambda run: (outputs if run.name.startswith("ods-") else indexes)(run)


async def _delete(stage: Stage) -> None:
    await stage.apply(*wide(deletionPolicy="Delete"))
    await stage.wait_for(WIDE, is_at_rest)
    await stage.delete(WIDE)
    await stage.wait_for(WIDE, lambda raw: not raw)


async def _adopt(stage: Stage) -> None:
    await stage.apply(*wide())
    await stage.wait_for(WIDE, has_reason("RunRunning"))
    await stage.lose_status(WIDE)
    await stage.wait_for(WIDE, has_reason("RunRunning"))
    stage.release()
    await stage.wait_for(WIDE, is_at_rest)


async def _resume(stage: Stage) -> None:
    await stage.apply(*wide())
    await stage.wait_for(WIDE, has_published(1))
    await stage.apply(spoilt(output(), "spec.run", {"suspend": True}))
    await stage.wait_for(WIDE, lambda raw: condition(raw, "Suspended") != {})
    await stage.apply(files("customer", format="orc"))
    await stage.wait_for(WIDE, has_reason("Suspended"))
    await stage.apply(output())
    await stage.wait_for(WIDE, has_published(3))


async def _restart(stage: Stage) -> None:
    await stage.apply(*wide())
    await stage.wait_for(WIDE, has_reason("RunRunning"))
    await stage.restart()
    stage.release()
    await stage.wait_for(WIDE, has_published(1))
    await stage.restart()
    await stage.apply(files("customer", format="orc"))
    await stage.wait_for(WIDE, has_published(3))


STORIES = {
    "publish": Story(_publish, completes, runs=1),
    "retry": Story(_retry, _fails_first, runs=2),
    "replace": Story(_replace, lambda: in_turn(_held(completes()), completes()), runs=2),
    "tick": Story(_tick, _twice, runs=2),
    "index": Story(_index, _index_script, runs=4, about=(WIDE, NARROW)),
    "delete": Story(_delete, lambda: in_turn(completes(), completes(removed())), runs=2),
    "adopt": Story(_adopt, lambda: _held(completes()), runs=1),
    "resume": Story(_resume, _twice, runs=2),
    "restart": Story(_restart, lambda: _twice(_held), runs=2),
}
"""All of them: a publication, a retry after a failure, a replacement, a tick of the schedule, the
refresh of an index after a publication, a deletion with its data, an adoption after the status was
lost, a rest, and operators that follow each other."""
