"""Two contend for a lease, wherever it is kept: never do both count as its holder.

A contender moves by one step: it sends a request, the request is carried out, or it gets the
answer. A history moves one of them by some steps, then one. Time passes in between, requests and
answers get lost, processes start again, and one clock runs faster than the other, by as much as the
rule allows.
"""

import itertools
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from kubernetes.client import ApiClient, ApiException, V1Lease
from support.operator.clusters import a_config_map, at_once
from support.operator.fakecluster import FakeCluster
from support.runner.quick import examples
from support.storage.folders import MemoryLease, a_folder, a_run, now

from snaploom.files.stores import open_store
from snaploom.output.folder import open_folder
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Attempt, Contender, Lease, LeaseState, Read, Swap, carry_out
from snaploom.run.clusterobjects import ClusterLease
from snaploom.run.joblog import Owner, RunIdentity
from snaploom_operator.cluster.lease import LeaseObject
from snaploom_operator.cluster.port import CONFIG_MAPS, LEASES
from snaploom_operator.errors import ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.objects import JsonObject, Metadata


class FakeLeaseApi:
    """The part of `CoordinationV1Api` that `ClusterLease` uses."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._client = ApiClient()

    def read_namespaced_lease(self, name: str, namespace: str, **_: object) -> V1Lease:
        return self._answer(self._cluster.get(LEASES, namespace, name))

    def create_namespaced_lease(self, namespace: str, body: V1Lease, **_: object) -> V1Lease:
        return self._answer(self._cluster.create(LEASES, namespace, self._raw(body)))

    def replace_namespaced_lease(
        self, name: str, namespace: str, body: V1Lease, **_: object
    ) -> V1Lease:
        return self._answer(self._cluster.replace(LEASES, namespace, self._raw(body)))

    def _raw(self, body: V1Lease) -> JsonObject:
        raw: JsonObject = self._client.sanitize_for_serialization(body)
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **raw}

    def _answer(self, asked: Coroutine[Any, Any, JsonObject]) -> V1Lease:
        try:
            stored = at_once(asked)
        except ObjectMissing as error:
            raise ApiException(HTTPStatus.NOT_FOUND, str(error)) from error
        except (ObjectChanged, ObjectExists) as error:
            raise ApiException(HTTPStatus.CONFLICT, str(error)) from error
        return self._client.deserialize(json.dumps(stored), "V1Lease", "application/json")


PROMISED, TRUSTED = 30, 20
RATES = (2, 3)
"""Ticks of a contender's clock in a unit of time: as far apart as what is promised and trusted."""
Parties = Callable[[], Lease]
"""The same lease, as another process sees it."""


@dataclass
class OperatorLease:
    """The Lease of leader election, whose requests are answered at once."""

    lease: LeaseObject

    def read(self) -> LeaseState:
        return at_once(self.lease.read())

    def swap(self, swap: Swap) -> LeaseState | None:
        return at_once(self.lease.swap(swap))


def in_memory() -> Parties:
    shared = MemoryLease()
    return lambda: shared


def as_claims() -> Parties:
    store = open_store("memory:", create=True)
    a_folder(store)
    return lambda: ClaimLease(open_folder(store), a_run())


def of_a_job() -> Parties:
    cluster = FakeCluster()
    # Of an owner that is there: what belongs to nobody is removed.
    created = at_once(cluster.create(CONFIG_MAPS, "default", a_config_map("owner")))
    api, uid = FakeLeaseApi(cluster), Metadata.of(created).uid
    owner, identity = Owner("OutputDataset", "wide", "default"), RunIdentity("run", uid, 0)
    return lambda: ClusterLease("s3://lake/wide/", owner, identity, now, lambda: api)  # type: ignore[arg-type,return-value]


def of_the_operator() -> Parties:
    cluster = FakeCluster()
    return lambda: OperatorLease(LeaseObject(cluster, "default", "lease", PROMISED, None, now))


PLACES = {
    "memory": in_memory,
    "claims": as_claims,
    "job": of_a_job,
    "operator": of_the_operator,
}
IDENTITIES = [a_run().run_id for _ in range(40)]


class Loss(Enum):
    """What happens instead of the next step of a contender."""

    NOTHING = "nothing"
    LOST = "its request or the answer is lost, wherever it is"
    RESTART = "its process starts again"
    RELEASE = "it releases the lease, if no request of it is under way"


@dataclass(frozen=True)
class Turn:
    who: int
    time: int
    steps: int
    loss: Loss
    """Of the last step."""


class Process:
    """A contender with a clock of its own, and its request that is under way."""

    def __init__(self, parties: Parties, rate: int, trusted: int, time: Callable[[], int]) -> None:
        self._parties = parties
        self._trusted = trusted
        self._clock = lambda: float(rate * time())
        self.start()

    def start(self) -> None:
        self._lease = self._parties()
        self.contender = Contender(next(_identities), PROMISED, self._trusted, self._clock)
        self._attempt: Attempt[object] | None = None

    def move(self, loss: Loss) -> None:
        if loss is Loss.RESTART:
            self.start()
        elif loss is Loss.LOST:
            self._attempt = None
        elif self._attempt is None:
            is_over = loss is Loss.RELEASE
            self._attempt = self.contender.release() if is_over else self.contender.hold()
            self._request: Read | Swap | None = next(self._attempt)
        elif self._request is not None:
            is_read = isinstance(self._request, Read)
            self._answer = self._lease.read() if is_read else self._lease.swap(self._request)
            self._request = None
        else:
            try:
                self._request = self._attempt.send(self._answer)
            except StopIteration:
                self._attempt = None


_identities = itertools.cycle(IDENTITIES)


def overlaps(
    history: Sequence[Turn], parties: Parties, rates: tuple[int, int], trusted: int = TRUSTED
) -> bool:
    """Whether both ever count as the holder at once."""
    time = 0
    both = [Process(parties, rate, trusted, lambda: time) for rate in rates]
    for turn in history:
        time += turn.time
        for _ in range(turn.steps):
            both[turn.who].move(Loss.NOTHING)
        both[turn.who].move(turn.loss)
        if all(process.contender.left > 0 for process in both):
            return True
    return False


times = st.sampled_from([0, 0, 1, 2, 5, 7, 10, 15])
losses = st.sampled_from([Loss.NOTHING] * 12 + list(Loss))
turns = st.builds(Turn, st.integers(0, 1), times, st.integers(0, 8), losses)
histories = st.lists(turns, min_size=5, max_size=30)
clocks = st.tuples(st.sampled_from(RATES), st.sampled_from(RATES))


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=examples(150), deadline=None)
@given(history=histories, rates=clocks)
def test_two_never_both_count_as_the_holder(place, history, rates):
    assert not overlaps(history, PLACES[place](), rates)


@pytest.mark.slow
def test_one_that_trusts_its_lease_for_longer_than_it_promised_is_noticed() -> None:
    def is_noticed(history: list[Turn]) -> bool:
        return overlaps(history, in_memory(), (2, 2), trusted=2 * PROMISED)

    assert find(histories, is_noticed, settings=settings(max_examples=5_000, database=None))


@pytest.mark.parametrize("place", PLACES)
def test_lease_of_a_silent_holder_is_taken_when_its_promise_is_over(place: str) -> None:
    parties, time = PLACES[place](), 0
    one, two = (Contender(each, PROMISED, TRUSTED, lambda: time) for each in IDENTITIES[:2])
    assert carry_out(one.hold(), parties())
    waiting = parties()
    while not carry_out(two.hold(), waiting):
        assert two.rival == IDENTITIES[0]
        time += 1
    assert (time, one.left, two.left, two.rival) == (PROMISED, 0, TRUSTED, "")


@pytest.mark.parametrize("place", PLACES)
def test_answer_that_was_lost_loses_no_lease(place: str) -> None:
    parties = PLACES[place]()
    one, lease = Contender(IDENTITIES[0], PROMISED, TRUSTED, lambda: 0.0), parties()
    attempt = one.hold()
    assert isinstance(next(attempt), Read)
    taken = attempt.send(lease.read())
    assert isinstance(taken, Swap)
    assert lease.swap(taken) is not None
    attempt.close()
    assert one.left == 0
    assert carry_out(one.hold(), lease)
    assert one.left == TRUSTED
