"""One process at a time holds the lease, whatever clocks, crashes and lost answers there are."""

import asyncio
import base64
import json

import pytest
from support.operator.clusters import a_config_map, until, until_gone
from support.operator.faultycluster import LOST_ANSWER, LOST_REQUEST, FaultyCluster, at, first

from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.cluster.client import account_reference
from snaploom_operator.cluster.lease import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    RETRY_PERIOD,
    LeaderElector,
    leading,
)
from snaploom_operator.cluster.port import CONFIG_MAPS, LEASES
from snaploom_operator.objects import Metadata

NAME = "snaploom-controller"


class Process:
    """A participant of the election, whose clock advances only while it waits."""

    def __init__(self, cluster, own_namespace, identity="one", date=0, slower_than=None):
        self.seconds = 100.0
        self.rounds = 0
        self.naps = {}
        """Seconds that a pause takes longer, by its number."""
        self.slower_than = slower_than
        self.cluster = FaultyCluster(cluster)
        self.leadership = LeaderElector(
            self.cluster,
            own_namespace,
            NAME,
            identity,
            clock=lambda: EpochNanos(int((date * 86_400 + self.seconds) * NANOS_PER_SECOND)),
            monotonic=lambda: self.seconds,
            pause=self.pause,
        )

    async def pause(self, seconds):
        self.seconds += seconds + self.naps.get(self.rounds, 0)
        self.rounds += 1
        await asyncio.sleep(0)
        if self.slower_than is not None:
            seen = self.slower_than.rounds
            while self.slower_than.rounds == seen:
                await asyncio.sleep(0.001)


async def holder(cluster, own_namespace):
    return (await cluster.get(LEASES, own_namespace, NAME))["spec"].get("holderIdentity")


async def test_first_participant_holds_the_lease(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    assert not one.leadership.is_held
    await one.leadership.acquire()
    assert one.leadership.is_held
    assert await holder(cluster, own_namespace) == "one"


async def test_released_lease_is_had_at_once(cluster, own_namespace):
    one, two = Process(cluster, own_namespace), Process(cluster, own_namespace, "two")
    await one.leadership.acquire()
    await one.leadership.release()
    assert not one.leadership.is_held
    await two.leadership.acquire()
    assert two.rounds == 0
    assert (await cluster.get(LEASES, own_namespace, NAME))["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("date", [-10_000, 0, 10_000])
async def test_lease_of_a_dead_process_is_had_when_its_promise_is_over(
    cluster, own_namespace, date
):
    one, two = Process(cluster, own_namespace, date=date), Process(cluster, own_namespace, "two")
    await one.leadership.acquire()
    start = two.seconds
    await two.leadership.acquire()
    assert LEASE_DURATION <= two.seconds - start <= LEASE_DURATION + RETRY_PERIOD


async def test_lease_that_is_renewed_stays(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    two = Process(cluster, own_namespace, "two", slower_than=one)
    await one.leadership.acquire()
    waiting = asyncio.create_task(two.leadership.acquire())
    keeping = asyncio.create_task(one.leadership.keep())

    async def has_waited_long():
        return two.rounds > 3 * LEASE_DURATION / RETRY_PERIOD

    await until(has_waited_long)
    assert (waiting.done(), keeping.done()) == (False, False)
    for task in (waiting, keeping):
        task.cancel()
    await asyncio.gather(waiting, keeping, return_exceptions=True)
    assert one.leadership.is_held


async def test_taken_lease_is_lost(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    await one.leadership.acquire()
    await cluster.patch(LEASES, own_namespace, NAME, {"spec": {"holderIdentity": "thief"}})
    await one.leadership.keep()
    assert not one.leadership.is_held
    await one.leadership.release()
    assert await holder(cluster, own_namespace) == "thief"


async def test_holder_gives_up_before_others_may_take_it(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    await one.leadership.acquire()
    start = one.seconds
    one.cluster.plan = first(1_000, LOST_REQUEST)
    await one.leadership.keep()
    assert RENEW_DEADLINE <= one.seconds - start < LEASE_DURATION


async def test_holder_that_did_not_run_for_long_goes_on_where_nobody_took_it(
    cluster, own_namespace
):
    one = Process(cluster, own_namespace)
    await one.leadership.acquire()
    one.naps[2] = 4 * LEASE_DURATION
    keeping = asyncio.create_task(one.leadership.keep())

    async def has_slept_and_renewed():
        return one.rounds > 4

    await until(has_slept_and_renewed)
    assert not keeping.done()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_deleted_lease_is_made_anew(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    await one.leadership.acquire()
    stored = Metadata.of(await cluster.get(LEASES, own_namespace, NAME))
    await cluster.delete(LEASES, own_namespace, NAME, uid=stored.uid)
    keeping = asyncio.create_task(one.leadership.keep())

    async def is_there_again():
        return any(Metadata.of(item).uid != stored.uid for item in await leases())

    async def leases():
        return (await cluster.list(LEASES, namespace=own_namespace)).items

    await until(is_there_again)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert await holder(cluster, own_namespace) == "one"


@pytest.mark.parametrize("fault", [LOST_REQUEST, LOST_ANSWER])
@pytest.mark.parametrize("number", range(1, 7))
async def test_lost_call_loses_no_lease(fake, fault, number):
    one = Process(fake, "default")
    one.cluster.plan = at(number, fault)
    await one.leadership.acquire()
    keeping = asyncio.create_task(one.leadership.keep())
    while len(one.cluster.calls) < 8:
        await asyncio.sleep(0)
    assert not keeping.done()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert one.leadership.is_held


async def test_work_is_done_while_the_lease_is_held(cluster, own_namespace):
    lost = []
    async with leading(Process(cluster, own_namespace).leadership, lambda: lost.append(True)):
        assert await holder(cluster, own_namespace) == "one"
    assert await holder(cluster, own_namespace) is None
    assert lost == []


async def test_worker_is_notified_once_that_the_lease_is_lost(cluster, own_namespace):
    lost = []
    async with leading(Process(cluster, own_namespace).leadership, lambda: lost.append(True)):
        await cluster.patch(LEASES, own_namespace, NAME, {"spec": {"holderIdentity": "thief"}})

        async def is_notified():
            return bool(lost)

        await until(is_notified)
    assert lost == [True]
    assert await holder(cluster, own_namespace) == "thief"


class LateRenewal(FaultyCluster):
    """Stores a renewal that was sent earlier, between the first read and what follows it."""

    async def get(self, resource, namespace, name):
        stored = await super().get(resource, namespace, name)
        if len(self.calls) == 1:
            await self.inner.patch(resource, namespace, name, {"metadata": {"labels": {"a": "b"}}})
        return stored


async def test_lease_is_released_although_a_cancelled_renewal_arrives_late(cluster, own_namespace):
    one = Process(cluster, own_namespace)
    await one.leadership.acquire()
    one.cluster.inner = LateRenewal(cluster)
    await one.leadership.release()
    assert await holder(cluster, own_namespace) is None


OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "loom", "uid": "0a-1b"}
CLAIMS = {
    "kubernetes.io": {"namespace": "here", "serviceaccount": {"name": "loom", "uid": "0a-1b"}}
}


def token(folder, claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    path = folder / "token"
    path.write_text(f"head.{payload}.signature")
    return path


def test_token_gives_the_account(tmp_path):
    assert account_reference("here", token(tmp_path, CLAIMS)) == OWNER


def test_account_of_another_namespace_owns_nothing_here(tmp_path):
    assert account_reference("elsewhere", token(tmp_path, CLAIMS)) is None


@pytest.mark.parametrize("claims", [[], {}, {"kubernetes.io": {"namespace": "here"}}, "text"])
def test_other_tokens_give_nothing(tmp_path, claims):
    assert account_reference("here", token(tmp_path, claims)) is None


@pytest.mark.parametrize("text", ["", "a.b", "a.é.c", "a.!!!.c"])
def test_what_is_no_token_gives_nothing(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    assert account_reference("here", path) is None


def test_outside_a_pod_there_is_no_account(tmp_path):
    assert account_reference("here", tmp_path / "token") is None


async def test_lease_is_deleted_with_its_owner(cluster, own_namespace):
    settings = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings"))
    uid = settings["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": uid}
    await LeaderElector(cluster, own_namespace, "owned", "one", owner).acquire()
    assert (await cluster.get(LEASES, own_namespace, "owned"))["metadata"]["ownerReferences"] == [
        owner
    ]
    await cluster.delete(CONFIG_MAPS, own_namespace, "settings", uid=uid)
    await until_gone(cluster, LEASES, own_namespace, "owned")
