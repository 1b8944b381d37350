"""Behind a proxy that spoils calls, or cuts the operator off, stories end as they do without it.

A story runs once to find the operator's calls, then again with a fault at each of them, or with
the death of the operator behind each write. Usually only a sample is run, the same each time;
`make prove-operator` runs them all.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from controller.faults.stories import STORIES, Ending, Story, ending
from support.operator.clusters import an_object
from support.operator.faultyproxy import FAULTS_OF, FaultyProxy, Plan, no_fault, running_proxy
from support.operator.jobdouble import JobDouble
from support.operator.operatorharness import (
    START,
    OperatorHarness,
    OperatorThread,
    Predicate,
    real_settings,
)
from support.operator.scriptedapi import write_plain_kubeconfig
from support.runner.proofscope import sampled, show_progress

from snaploom.errors import SnaploomError
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.cluster import requests
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import EVENTS, LEASES, NAMESPACES, OURS, Cluster
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Metadata
from snaploom_operator.process.operator import Clocks, RunOptions

Raw = dict[str, Any]
DEADLINE = 120.0
"""Seconds for one step of a story: a stalled watch costs a list or two, which are 10 apart."""
RESYNC = 10
LOOKS = 0.1
MOST_LIVES = 10


class MovedClock:
    """Begins when all stories do, runs as clocks do, and is moved on by stories."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.moved = 0.0

    def now(self) -> EpochNanos:
        elapsed = time.monotonic() - self._started + self.moved
        return EpochNanos(START + int(elapsed * NANOS_PER_SECOND))


class ProxiedStage(OperatorHarness):
    """One operator after the other in one namespace.

    Args:
        cluster: the cluster, for people and jobs.
        proxy: the cluster, for operators.
        kubeconfig: how operators reach the proxy.
        namespace: where everything is.
        story: what is to be run.
    """

    def __init__(
        self, cluster: Cluster, proxy: FaultyProxy, kubeconfig: Path, namespace: str, story: Story
    ) -> None:
        super().__init__(
            cluster, namespace, JobDouble(cluster, story.script(), namespace=namespace)
        )
        self.proxy = proxy
        self.lives = 0
        self._place = RunOptions(kubeconfig)
        self._settings = real_settings(namespace, resyncSeconds=RESYNC)
        self._clock = MovedClock()
        self._failures: list[Exception] = []
        self._thread: OperatorThread | None = None

    async def begin(self) -> None:
        """An operator begins, as often as it takes."""
        while self._thread is None:
            self.lives += 1
            assert self.lives < MOST_LIVES, self._failures
            self.proxy.is_dead = False
            thread = OperatorThread(self._settings, self._place, Clocks(self._clock.now))
            beginning = asyncio.create_task(thread.begin())
            while not beginning.done():
                await asyncio.wait([beginning], timeout=LOOKS)
                if self.proxy.is_dead:  # it would wait for its Lease, as one does that is cut off
                    await thread.end()
            try:
                await beginning
            except SnaploomError as error:
                self._failures.append(error)
            if thread.is_running:
                self._thread = thread
            else:
                await self._free_lease()

    async def end(self) -> None:
        """End the operator, without waiting until its Lease expires."""
        if self._thread is not None:
            await self._thread.end()
        self._thread = None
        self._failures.clear()
        await self._free_lease()

    async def _free_lease(self) -> None:
        try:
            lease = await self.cluster.get(LEASES, self.namespace, self._settings.lease)
        except ObjectMissing:
            return
        uid = Metadata.of(lease).uid
        await self.cluster.delete(LEASES, self.namespace, self._settings.lease, uid=uid)

    async def apply(self, *declarations: Any) -> None:
        await self._remember()
        await super().apply(*declarations)

    async def lose_status(self, identity: str) -> None:
        await self._remember()
        kind, _, name = identity.partition("/")
        patch = {"status": None}
        await self.cluster.patch(OURS[kind], self.namespace, name, patch, subresource="status")

    async def _remember(self) -> None:
        """What is there now is what stale reads show from now on."""
        listing = await self.cluster.list(EVENTS, namespace=self.namespace)
        self.proxy.past = listing.resource_version

    async def restart(self) -> None:
        await self.end()
        await self.begin()

    async def pass_time(self, seconds: float) -> None:
        self._clock.moved += seconds
        if self._thread is not None:
            self._thread.running.operator.handle_clock_jump()

    def release(self) -> None:
        self.double.release()

    async def go_on(self) -> None:
        if self.proxy.is_dead or self._thread is None or not self._thread.is_running:
            await self.restart()
        await self.double.step()
        await asyncio.sleep(LOOKS)

    async def wait_for(self, identity: str, predicate: Predicate) -> Raw:
        deadline = time.monotonic() + DEADLINE
        while not predicate(found := await self.get(identity)):
            assert time.monotonic() < deadline, (
                f"{identity} is not as it should be: {yaml.safe_dump(found)}"
            )
            await self.go_on()
        return found

    async def come_to(self, story: Story, wanted: Ending | None) -> Ending:
        """The end of a story, once nothing moves any more; it may take a while to be the wanted."""
        deadline = time.monotonic() + DEADLINE / 4
        while True:
            ended = await ending(story, self, self.proxy.created)
            thread = None if self.proxy.is_dead else self._thread
            is_still = thread is not None and thread.running.operator.queue.is_idle
            if (is_still and wanted in (None, ended)) or time.monotonic() > deadline:
                return ended
            await self.go_on()


@asynccontextmanager
async def proxied_stage(
    kubeconfig: Path, folder: Path, story: Story, plan: Plan = no_fault, dies_behind: int = 0
) -> AsyncIterator[ProxiedStage]:
    """A stage in a namespace of its own.

    Args:
        kubeconfig: how the cluster is reached.
        folder: where a kubeconfig can be written.
        story: what is to be run.
        plan: what goes wrong with which call.
        dies_behind: the number of the write behind which the first operator dies; 0 for none.
    """
    namespace = f"story-{uuid.uuid4().hex[:12]}"
    async with (
        open_cluster(kubeconfig) as cluster,
        running_proxy(kubeconfig, plan, dies_behind) as proxy,
    ):
        plain = write_plain_kubeconfig(folder / f"{namespace}.kubeconfig", proxy.url)
        created = await cluster.create(NAMESPACES, "", an_object(NAMESPACES, namespace))
        stage = ProxiedStage(cluster, proxy, plain, namespace, story)
        await stage._remember()
        try:
            await stage.begin()
            yield stage
        finally:
            await stage.end()
            await cluster.delete(NAMESPACES, "", namespace, uid=Metadata.of(created).uid)


async def run_through_proxy(
    kubeconfig: Path,
    folder: Path,
    story: Story,
    plan: Plan = no_fault,
    *,
    dies_behind: int = 0,
    wanted: Ending | None = None,
) -> tuple[Ending, ProxiedStage]:
    """Run a story; how it ended, and the stage. See `proxied_stage`.

    Args:
        wanted: how it ends undisturbed.
    """
    async with proxied_stage(kubeconfig, folder, story, plan, dies_behind) as stage:
        await story.steps(stage)
        return await stage.come_to(story, wanted), stage


PATIENCE = 3.0
AT_ONCE = 4
"""Stories that run at once: they mostly wait."""
each_story = pytest.mark.parametrize("name", STORIES)


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.fixture
def play(spark_plane, tmp_path, known, monkeypatch):
    """A function that runs a story; undisturbed ones once.

    Requests without an answer are given up after seconds rather than half a minute.
    """
    monkeypatch.setattr(requests, "REQUEST_SECONDS", PATIENCE)

    async def run_story(name, **options):
        return await run_through_proxy(spark_plane.kubeconfig, tmp_path, STORIES[name], **options)

    async def run_undisturbed(name):
        if name not in known:
            known[name] = await run_story(name)
        return known[name]

    run_story.undisturbed = run_undisturbed
    return run_story


@each_story
async def test_neither_death_nor_fault_changes_the_end(name, play):
    wanted, stage = await play.undisturbed(name)
    assert wanted.runs == wanted.names == STORIES[name].runs
    calls = dict.fromkeys(stage.proxy.calls)
    if name != "publish":  # of what all stories begin with it is shown there
        _, simplest = await play.undisturbed("publish")
        calls = {call: None for call in calls if call not in set(simplest.proxy.calls)}
    points = [(call, fault) for call in calls for fault in FAULTS_OF[call.verb]]
    chosen = sampled(points, 8 if name == "publish" else 2)
    deaths = sampled(range(1, stage.proxy.writes + 1), 1)
    died = spoilt = 0

    async def with_death(number):
        nonlocal died
        ended, stage = await play(name, dies_behind=number, wanted=wanted)
        died += stage.proxy.has_died
        return f"death behind {number}: {ended}" if ended != wanted else ""

    async def with_fault(spoilt_call, fault):
        nonlocal spoilt
        ended, stage = await play(
            name, plan=lambda call: fault if call == spoilt_call else None, wanted=wanted
        )
        spoilt += spoilt_call in stage.proxy.spoilt
        return f"{fault} at {spoilt_call}: {ended}" if ended != wanted else ""

    answers = [
        *(with_death(number) for number in deaths),
        *(with_fault(*point) for point in chosen),
    ]
    assert "\n".join(await all_of(name, answers)) == ""
    # Calls depend on what is seen when: some are made in one run, and not in the next.
    assert spoilt * 2 >= len(chosen) or name != "publish"
    assert died * 2 >= len(deaths)


async def all_of(name: str, answers: Sequence[Awaitable[str]]) -> list[str]:
    """Answers that are not empty, of coroutines of which a few go on at once."""
    places = asyncio.Semaphore(AT_ONCE)
    failures: list[str] = []

    async def answered(answer: Awaitable[str]) -> None:
        async with places:
            try:
                failures.append(await answer)
            except AssertionError as error:
                failures.append(str(error))
        show_progress(f"{name}: ran {len(failures)} of {len(answers)} {failures[-1]}")

    await asyncio.gather(*map(answered, answers))
    return [failure for failure in failures if failure]
