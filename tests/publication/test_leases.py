"""Leases: the same contract in every store, and how runs use them."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cluster.cluster import Cluster
from support.storage.folders import MemoryLease, a_folder, a_run, day, now, published
from support.storage.processes import DEADLINE, SPAWN, publish_under_a_lease, wait_until_stopped
from support.weaving.loom import Loom

from snaploom.errors import Interrupted, LeaseNotObtained
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output.entries import Revoke
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.leaseholder import SCOPE, TERMS, ClaimLease, LeaseKeeper, LeaseTerms
from snaploom.output.leases import Contender, Lease, LeaseState, Swap, carry_out
from snaploom.output.publication import Published
from snaploom.output.state import FolderState
from snaploom.run.clusterobjects import FOLDER, ClusterLease, lease_name
from snaploom.run.joblog import Owner, RunIdentity

ONE, TWO = a_run().run_id, a_run().run_id
Party = Callable[[], Lease]
"""Gives the lease of one folder, as another process sees it."""


@pytest.fixture
def store() -> ObjectStore:
    store = open_store("memory:", create=True)
    a_folder(store)
    return store


@pytest.fixture
def cluster_party(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Party:
    """As a ServiceAccount with the three verbs and no other right."""
    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "driver", "--namespace", namespace)
    kubectl(
        "create", "role", "driver", "--verb=get,create,update",
        "--resource=leases.coordination.k8s.io", "--namespace", namespace,
    )  # fmt: skip
    kubectl(
        "create", "rolebinding", "driver", "--role=driver",
        f"--serviceaccount={namespace}:driver", "--namespace", namespace,
    )  # fmt: skip
    output = Loom(tmp_path).bundle().output.dump()
    kubectl("create", "--namespace", namespace, "-f", "-", stdin=json.dumps(output))
    uid = kubectl.get("outputdataset", "wide", namespace)["metadata"]["uid"]
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig_of(namespace, "driver")))
    owner, identity = Owner("OutputDataset", "wide", namespace), RunIdentity("ods-wide-1", uid, 0)
    return lambda: ClusterLease("s3://lake/wide/", owner, identity, now)


@pytest.fixture(params=["memory", "claims", "cluster"])
def party(request: pytest.FixtureRequest) -> Party:
    if request.param == "cluster":
        found: Party = request.getfixturevalue("cluster_party")
        return found
    if request.param == "memory":
        shared = MemoryLease()
        return lambda: shared
    store: ObjectStore = request.getfixturevalue("store")
    return lambda: ClaimLease(open_folder(store), a_run())


def taken(lease: Lease, holder: str, seconds: int = 30) -> LeaseState:
    held = lease.swap(Swap(lease.read(), holder, seconds))
    assert held is not None
    return held


def renewed(lease: Lease, held: LeaseState) -> LeaseState | None:
    return lease.swap(Swap(held, held.holder, held.seconds))


def release(lease: Lease, holder: str) -> None:
    carry_out(Contender(holder, 30, 30, time.monotonic).release(), lease)


def test_free_lease_is_acquired(party: Party) -> None:
    assert party().read().holder == ""
    held = taken(party(), ONE)
    seen = party().read()
    assert (seen.holder, seen.seconds, seen.version) == (ONE, 30, held.version)


def test_of_two_that_saw_it_free_one_gets_it(party: Party) -> None:
    first, second = party(), party()
    seen = first.read(), second.read()
    assert first.swap(Swap(seen[0], ONE, 30)) is not None
    assert second.swap(Swap(seen[1], TWO, 30)) is None
    assert second.read().holder == ONE


def test_renewal_is_seen_and_leaves_the_holder(party: Party) -> None:
    mine, theirs = party(), party()
    held = taken(mine, ONE)
    before = theirs.read()
    once = renewed(mine, held)
    assert once is not None
    assert renewed(mine, once) is not None
    after = theirs.read()
    assert (after.holder, after.seconds) == (ONE, 30)
    assert after.version != before.version
    assert theirs.swap(Swap(before, TWO, 30)) is None


def test_lease_that_another_took_is_not_renewed(party: Party) -> None:
    mine, theirs = party(), party()
    held = taken(mine, ONE)
    assert taken(theirs, TWO).holder == TWO
    assert renewed(mine, held) is None
    assert mine.read().holder == TWO


def test_released_lease_is_free_and_had_again(party: Party) -> None:
    mine, theirs = party(), party()
    taken(mine, ONE)
    release(mine, ONE)
    assert theirs.read().holder == ""
    assert taken(theirs, TWO).holder == TWO


def test_lease_of_another_is_not_released(party: Party) -> None:
    mine, theirs = party(), party()
    taken(mine, ONE)
    taken(theirs, TWO)
    release(mine, ONE)
    assert theirs.read().holder == TWO
    release(party(), ONE)
    assert theirs.read().holder == TWO


def test_lease_in_a_cluster_names_its_output(cluster_party, control_plane, namespace):
    taken(cluster_party(), ONE)
    taken(cluster_party(), TWO)
    found = control_plane.kubectl.get(
        "leases.coordination.k8s.io", lease_name("s3://lake/wide/"), namespace
    )
    assert found["metadata"]["annotations"][FOLDER] == "s3://lake/wide/"
    assert found["metadata"]["labels"]["snaploom.io/run"] == "ods-wide-1"
    assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == ["wide"]
    spec = found["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == (TWO, 1)


def test_token_of_a_claim_is_the_number_of_its_entry(store: ObjectStore) -> None:
    taken(ClaimLease(open_folder(store), a_run()), ONE)
    claim = open_folder(store).log.read().claims[SCOPE]
    assert (claim.seq, claim.run_id, claim.seconds) == (2, ONE, 30)


def test_renewals_of_a_claim_are_no_entries(store: ObjectStore) -> None:
    lease = ClaimLease(open_folder(store), a_run())
    held: LeaseState | None = taken(lease, ONE)
    for _ in range(3):
        assert held is not None
        held = renewed(lease, held)
    assert open_folder(store).log.read().seq == 2
    assert ClaimLease(open_folder(store), a_run()).read() == held


def test_claim_of_a_revoked_run_does_not_count(store: ObjectStore) -> None:
    lease = ClaimLease(open_folder(store), a_run())
    held = taken(lease, ONE)

    def revocation(state: FolderState) -> Revoke:
        return Revoke(
            seq=state.next_seq, run_id=TWO, written_at=now(), tool_version="0", run_ids=(ONE,)
        )

    open_folder(store).log.commit(revocation)
    assert lease.read().holder == ""
    assert renewed(lease, held) is None
    assert taken(lease, TWO).holder == TWO


@pytest.mark.parametrize("hint", [b"{", b"{}", b'{"claim": 2, "renewals": "many"}'])
def test_count_of_renewals_that_is_damaged_is_ignored(store: ObjectStore, hint: bytes) -> None:
    held = taken(ClaimLease(open_folder(store), a_run()), ONE)
    store.put("metadata/_claim", hint)
    assert ClaimLease(open_folder(store), a_run()).read() == held


class Clock:
    """Seconds that pass only while somebody waits; then also others act."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile()


def keeper(lease: Lease, clock: Clock, holder: str = ONE) -> LeaseKeeper:
    return LeaseKeeper(lease, holder, TERMS, clock, clock.wait)


def recorded(rivals: list[str]) -> Callable[[str], None]:
    return rivals.append


def test_expired_lease_of_a_silent_run_is_acquired() -> None:
    lease, clock, rivals = MemoryLease(), Clock(), list[str]()
    taken(lease, TWO, seconds=20)
    keeper(lease, clock).acquire(recorded(rivals))
    assert lease.seen.holder == ONE
    assert 120 <= clock.seconds <= 120 + TERMS.poll_every
    assert rivals == [TWO]


def test_run_gives_up_on_one_that_renews_its_lease() -> None:
    lease, clock, rivals = MemoryLease(), Clock(), list[str]()
    other = keeper(lease, clock, TWO)
    other.acquire(recorded(rivals))
    clock.meanwhile = other.keep
    with pytest.raises(LeaseNotObtained, match=f"run {TWO} is at work"):
        keeper(lease, clock).acquire(recorded(rivals))
    assert clock.seconds >= 100 + TERMS.patience
    assert (lease.seen.holder, rivals) == (TWO, [TWO])


def test_run_that_waits_has_the_lease_as_soon_as_it_is_given_back() -> None:
    lease, clock = MemoryLease(), Clock()
    taken(lease, TWO)
    clock.meanwhile = lambda: release(lease, TWO)
    keeper(lease, clock).acquire(recorded([]))
    assert clock.seconds == 100 + TERMS.poll_every


def test_run_goes_on_where_nobody_answers_and_has_the_lease_later(caplog):
    lease, clock = MemoryLease(is_down=True), Clock()
    mine = keeper(lease, clock)
    mine.acquire(recorded([]))
    mine.check()
    assert [record.message[:35] for record in caplog.records] == [
        "the run goes on without its lease, "
    ]
    lease.is_down = False
    mine.check()
    assert lease.seen.holder == ONE


def test_run_begins_nothing_more_when_another_has_taken_its_lease() -> None:
    lease, clock = MemoryLease(), Clock()
    mine = keeper(lease, clock)
    mine.acquire(recorded([]))
    mine.check()
    taken(lease, TWO)
    mine.keep()
    with pytest.raises(LeaseNotObtained, match=f"run {TWO} is at work"):
        mine.check()
    mine.release()
    assert lease.seen.holder == TWO


@pytest.mark.parametrize("is_taken", [False, True])
def test_run_that_slept_looks_before_it_goes_on(is_taken: bool) -> None:
    lease, clock = MemoryLease(), Clock()
    mine = keeper(lease, clock)
    mine.acquire(recorded([]))
    clock.seconds += TERMS.duration
    if is_taken:
        taken(lease, TWO)
        with pytest.raises(LeaseNotObtained):
            mine.check()
    else:
        mine.check()
        assert lease.seen.holder == ONE


def test_lease_is_not_taken_again_once_it_was_given_back() -> None:
    lease, clock = MemoryLease(), Clock()
    mine = keeper(lease, clock)
    with mine.keeping(recorded([])):
        assert lease.seen.holder == ONE
    mine.keep()
    assert lease.seen.holder == ""


@pytest.mark.parametrize("ending", [Interrupted("stopped"), RuntimeError("a fault")])
def test_lease_is_given_back_whatever_ends_the_run(ending: Exception) -> None:
    lease = MemoryLease()
    with pytest.raises(type(ending)), keeper(lease, Clock()).keeping(recorded([])):
        raise ending
    assert lease.seen.holder == ""


def test_run_that_is_stopped_while_it_waits_does_not_change_the_lease() -> None:
    lease, clock = MemoryLease(), Clock()
    taken(lease, TWO)

    def stop() -> None:
        raise Interrupted("stopped")

    clock.meanwhile = stop
    with pytest.raises(Interrupted), keeper(lease, clock).keeping(recorded([])):
        raise AssertionError("it was not to begin")
    assert lease.seen.holder == TWO


def test_lease_is_renewed_while_the_run_is_at_work() -> None:
    lease = MemoryLease()
    mine = LeaseKeeper(lease, ONE, LeaseTerms(every=0.001))
    with mine.keeping(recorded([])):
        deadline = time.monotonic() + DEADLINE
        while lease.changes < 4:
            assert time.monotonic() < deadline
        assert lease.seen.holder == ONE


def is_held_by(folder: Folder, run_id: str) -> bool:
    claim = folder.log.read().claims[SCOPE]
    return (claim.run_id, claim.seconds > 0) == (run_id, True)


@pytest.mark.parametrize("point", [CrashPoint.AFTER_STAGING, CrashPoint.AFTER_PROMOTION])
def test_run_that_sleeps_past_its_lease_harms_nothing_and_begins_nothing_more(tmp_path, point):
    folder = a_folder(open_store(str(tmp_path), create=True))
    sleeper = SPAWN.Process(target=publish_under_a_lease, args=(tmp_path, point))
    sleeper.start()
    run = a_run(start=now())
    mine = LeaseKeeper(ClaimLease(folder, run), run.run_id, LeaseTerms(patience=DEADLINE))
    try:
        wait_until_stopped(sleeper)
        with mine.keeping(lambda rival: None):
            outcome = published(folder, run=run)
            assert sleeper.pid is not None
            os.kill(sleeper.pid, signal.SIGCONT)
            sleeper.join(DEADLINE)
            assert is_held_by(open_folder(folder.store), run.run_id)
    finally:
        sleeper.kill()
    assert sleeper.exitcode == LeaseNotObtained.exit_code
    assert isinstance(outcome, Published)
    state = open_folder(folder.store).log.read()
    assert {time: record.run_id for time, record in state.live.items()} == {day(0): run.run_id}
