"""Two concurrent runs of one output: one works, the other waits, and no snapshot is woven twice."""

import json
from pathlib import Path

import pytest
from support.cluster.cluster import Cluster
from support.storage.folders import MemoryLease, a_run
from support.weaving.loom import RUN, UID, ClusterJob, Loom, ids

from snaploom.models.report import RunPhase
from snaploom.output.folder import CrashPoint
from snaploom.output.leaseholder import LeaseTerms, OpenLease
from snaploom.output.leases import Swap
from snaploom.plan.bundle import Bundle
from snaploom.run import clusterjob
from snaploom.run.clusterobjects import lease_name
from snaploom.run.declarations import report_exit_code
from snaploom.run.runevents import Event, LeaseAwaited, SnapshotPublished

pytestmark = pytest.mark.spark

OTHER = a_run().run_id
HASTY = LeaseTerms(patience=0.05, poll_every=0.01)


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("order", day, ids(*range(day)))
    return loom


@pytest.fixture
def lease() -> MemoryLease:
    return MemoryLease()


def shared(lease: MemoryLease) -> OpenLease:
    return lambda folder, run: lease


def test_run_that_finds_another_at_work_leaves_its_snapshots_to_it(spark, loom, lease) -> None:
    lease.swap(Swap(lease.read(), OTHER, 30))
    woven = loom.weave(spark, lease=shared(lease), terms=HASTY)
    report = woven.report
    assert woven.events_of(LeaseAwaited) == [LeaseAwaited(OTHER)]
    assert woven.outcomes == {1: "LEASE_HELD", 2: "LEASE_HELD"}
    assert (report.phase, report.reason) == (RunPhase.FAILED, "LeaseNotObtained")
    assert (report.retryable, report_exit_code(report)) == (True, 4)
    assert f"run {OTHER} is at work" in report.message
    assert loom.data_files() == set()
    assert lease.seen.holder == OTHER


def test_what_the_other_run_published_meanwhile_is_not_missed(spark, loom, lease) -> None:
    lease.swap(Swap(lease.read(), OTHER, 30))
    winners = []

    def overtake(event: Event) -> None:
        if isinstance(event, LeaseAwaited):
            winners.append(loom.weave(spark).report)

    woven = loom.weave(spark, lease=shared(lease), terms=HASTY, emit=overtake)
    assert (woven.report.phase, woven.report.message) == (RunPhase.SUCCEEDED, "")
    assert woven.outcomes == {1: "ALREADY_PUBLISHED", 2: "ALREADY_PUBLISHED"}
    assert {record.run_id for record in loom.state().snapshots} == {winners[0].run_id}


def test_run_that_loses_its_lease_begins_no_further_snapshot(spark, loom, lease) -> None:
    def steal(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_STAGING:
            lease.swap(Swap(lease.read(), OTHER, 30))

    terms = LeaseTerms(duration=0)  # so that it looks before each snapshot
    woven = loom.weave(spark, lease=shared(lease), terms=terms, reached=steal)
    assert woven.outcomes == {1: "PUBLISHED", 2: "LEASE_HELD"}
    assert woven.report.reason == "LeaseNotObtained"
    assert loom.is_clean()
    assert lease.seen.holder == OTHER


def test_lease_is_given_back_before_the_run_ends(spark, loom, lease) -> None:
    holders = []

    def look(event: Event) -> None:
        if isinstance(event, SnapshotPublished):
            holders.append(lease.seen.holder)

    woven = loom.weave(spark, lease=shared(lease), emit=look)
    assert holders == [woven.report.run_id] * 2
    assert lease.seen.holder == ""


def test_run_in_a_cluster_holds_a_lease_of_kubernetes(
    spark, loom, control_plane: Cluster, namespace: str, monkeypatch, tmp_path: Path
) -> None:
    kubectl = control_plane.kubectl
    raw = loom.bundle().dump()
    kubectl("create", "--namespace", namespace, "-f", "-", stdin=json.dumps(raw["outputDataset"]))
    stored = kubectl.get("outputdataset", "wide", namespace)["metadata"]
    raw["outputDataset"]["metadata"] = {
        name: stored[name] for name in ("name", "namespace", "uid", "resourceVersion")
    }
    for source in raw["dataSources"]:
        source["metadata"]["namespace"] = namespace
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    where = ["--report", f"configmap:{namespace}/{RUN}-report"]
    arguments = ClusterJob(tmp_path).arguments(Bundle.parse(raw), *where)
    arguments[arguments.index(UID)] = stored["uid"]
    assert clusterjob.main(arguments) == 0
    state = loom.state()
    assert len(state.live) == 2
    assert state.claims == {}
    assert (state.identity.namespace, state.identity.uid) == (namespace, stored["uid"])
    lease = kubectl.get("leases.coordination.k8s.io", lease_name(loom.uri), namespace)
    assert lease["metadata"]["labels"]["snaploom.io/run"] == RUN
    assert "holderIdentity" not in lease["spec"]
