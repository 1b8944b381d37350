"""kopf between the operator and a real API server: what it survives, and what it never does."""

import asyncio
import copy
import inspect
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import kopf
import pytest
import yaml
from aiohttp import ClientConnectorCertificateError
from support.cluster.cluster import Cluster, ControlPlane
from support.cluster.clusterkubectl import Kubectl
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import files, model, spoilt
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.faultyproxy import Call, Fault, FaultyProxy, running_proxy
from support.operator.operatorharness import RealHarness, has_reason, is_ready
from support.operator.operatorprocess import WORKS, operator_process
from support.operator.scriptedapi import write_plain_kubeconfig

from snaploom_operator.cluster.client import open_cluster, watching_session
from snaploom_operator.cluster.port import LEASES, OURS
from snaploom_operator.handlers import process as handlers
from snaploom_operator.handlers.process import (
    Endless,
    add_event_handlers,
    add_process_handlers,
    changed,
    kopf_settings,
)
from snaploom_operator.objects import Ref
from snaploom_operator.process.operator import operator_kinds
from snaploom_operator.process.process import Process
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.feed import Feed
from snaploom_operator.store.store import Store

WIDE = "OutputDataset/wide"
KINDS = operator_kinds(OperatorSettings(), is_local=False)


class Plan:
    """What goes wrong with the calls of a verb and a kind, from when it is set."""

    def __init__(self) -> None:
        self.faults: dict[tuple[str, str], list[Fault | None]] = {}
        self.outage: frozenset[str] = frozenset()
        """Verbs that answer 500 for as long as this is set."""

    def __call__(self, call: Call) -> Fault | None:
        if call.verb in self.outage:
            return Fault.BROKEN
        coming = self.faults.get((call.verb, call.what))
        return coming.pop(0) if coming else None


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def proxy(spark_plane: Cluster, plan: Plan) -> AsyncIterator[FaultyProxy]:
    async with running_proxy(spark_plane.kubeconfig, plan) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(handlers, "BACKOFFS", (0.1,))


@pytest.fixture
async def proxied(
    spark_plane: Cluster, proxy: FaultyProxy, namespace: str, tmp_path: Path, impatient: None
) -> AsyncIterator[RealHarness]:
    """An operator behind the proxy, not yet started."""
    kubeconfig = write_plain_kubeconfig(tmp_path / "proxied", proxy.url)
    async with open_cluster(spark_plane.kubeconfig) as cluster:
        found = RealHarness(cluster, kubeconfig, namespace)
        try:
            yield found
        finally:
            await found.stop()


async def knows(harness: RealHarness, name: str) -> None:
    ref = Ref("DataSource", harness.namespace, name)

    async def is_known() -> bool:
        assert harness.failure is None, harness.failure
        return harness.operator.store.get(ref) is not None

    await until(is_known)


async def lacks(harness: RealHarness, name: str) -> None:
    ref = Ref("DataSource", harness.namespace, name)

    async def is_gone() -> bool:
        return harness.operator.store.get(ref) is None

    await until(is_gone)


async def until_spoilt(proxy: FaultyProxy) -> None:
    async def has_met_a_fault() -> bool:
        return bool(proxy.spoilt)

    await until(has_met_a_fault)


OF_BOTH = [Fault.EXPIRED, Fault.LOST_REQUEST, Fault.PATIENCE, Fault.BROKEN]


@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        *(("list", fault) for fault in OF_BOTH),
        *(("watch", fault) for fault in OF_BOTH),
        ("watch", Fault.EXPIRED_INSIDE), ("watch", Fault.DROPPED), ("watch", Fault.STALLED),
    ],
)  # fmt: skip
async def test_a_fault_of_a_list_or_watch_ends_nothing(proxied, proxy, plan, verb, fault):
    ours = [None] if verb == "list" else []  # the first list is the operator's own
    plan.faults[verb, "datasources"] = [*ours, fault]
    await proxied.start()
    await until_spoilt(proxy)
    await proxied.apply(files("one"))
    await knows(proxied, "one")
    assert len(proxy.spoilt) == 1


@pytest.mark.parametrize("fault", [None, Fault.EXPIRED])
async def test_what_changes_between_the_list_and_the_watch_is_watched(proxied, proxy, plan, fault):
    plan.faults["list", "datasources"] = [None, Fault.SLOW]  # kopf's, of what was listed already
    plan.faults["watch", "datasources"] = [fault]
    await proxied.apply(files("gone"))
    await proxied.start()
    await until_spoilt(proxy)
    await proxied.delete("DataSource/gone")
    await proxied.apply(files("new"))
    await knows(proxied, "new")
    if fault is Fault.EXPIRED:  # kopf lists again, which shows nothing of what vanished
        await proxied.list_all()
    await lacks(proxied, "gone")


async def test_what_vanished_while_a_watch_expired_is_found_by_the_next_list(proxied, plan):
    plan.faults["watch", "datasources"] = [Fault.STALLED, Fault.EXPIRED_INSIDE]
    await proxied.apply(files("gone"))
    await proxied.start()
    await knows(proxied, "gone")
    await proxied.delete("DataSource/gone")
    await proxied.apply(files("new"))
    await knows(proxied, "new")
    await proxied.list_all()
    await lacks(proxied, "gone")


async def test_an_outage_of_watches_longer_than_any_backoff_ends_nothing(proxied, proxy, plan):
    attempts = 3 * len(list(kopf.OperatorSettings().networking.error_backoffs))  # type: ignore[arg-type]
    plan.faults["watch", "datasources"] = [Fault.BROKEN] * attempts
    await proxied.start()
    await until_spoilt(proxy)
    await proxied.apply(files("during"))
    await knows(proxied, "during")
    assert len(proxy.spoilt) == attempts


async def test_an_outage_of_everything_costs_the_lease_and_the_next_process_goes_on(proxied, plan):
    await proxied.start()
    await proxied.apply(*model())
    await proxied.wait_for(WIDE, is_ready)
    plan.outage = frozenset({"watch", "list", "get", "create", "replace", "patch", "delete"})

    async def has_ended() -> bool:
        return proxied.failure is not None

    await until(has_ended)
    assert "leadership lost" in str(proxied.failure)
    await proxied.delete("DataSource/customer")
    plan.outage = frozenset()
    await proxied.restart()
    await proxied.wait_for(WIDE, has_reason("ReferenceMissing"))


async def test_the_end_waits_for_a_slow_write_and_releases_the_lease(proxied, proxy, plan):
    plan.faults["patch", "datasources/status"] = [Fault.SLOW]
    await proxied.start()
    await proxied.apply(files("one"))

    await until_spoilt(proxy)
    await proxied.stop()
    assert is_ready(await proxied.get("DataSource/one"))
    lease: Any = await proxied.cluster.get(LEASES, proxied.namespace, OperatorSettings().lease)
    assert not lease["spec"].get("holderIdentity")
    assert proxied.failure is None


async def test_a_watch_that_is_dead_ends_the_process(proxied, proxy, plan, monkeypatch):
    monkeypatch.setattr("snaploom_operator.store.feed.WATCH_LAG_SECONDS", 0.5)
    monkeypatch.setattr(handlers, "SILENT_SECONDS", 600.0)
    plan.faults["watch", "datasources"] = [Fault.STALLED] * 100
    proxied.configure(resyncSeconds=10)
    await proxied.start()
    await until_spoilt(proxy)
    await proxied.apply(files("unheard"))

    async def has_ended() -> bool:
        return proxied.failure is not None

    await until(has_ended)
    assert "the watch of DataSource reports no changes" in str(proxied.failure)


async def test_no_object_gains_or_loses_anything_that_nobody_decided(harness):
    kept = spoilt(files("one"), "metadata.finalizers", ["snaploom.io/finalizer", "other.io/kept"])
    await harness.apply(kept)
    before = await harness.wait_for("DataSource/one", is_ready)
    await harness.restart()
    await harness.apply(files("two"))
    await harness.wait_for("DataSource/two", is_ready)
    after = await harness.get("DataSource/one")
    assert after == before
    assert "other.io/kept" in after["metadata"]["finalizers"]
    assert "annotations" not in after["metadata"]
    await harness.cluster.patch(
        OURS["DataSource"], harness.namespace, "one", {"metadata": {"finalizers": None}}
    )


@pytest.mark.parametrize("namespaces", [[], ["default"]], ids=["everywhere", "one namespace"])
def test_a_kind_that_is_installed_later_and_again_is_watched(
    own_control_plane: ControlPlane, tmp_path: Path, namespaces: list[str]
) -> None:
    plane, kubectl = own_control_plane, own_control_plane.kubectl
    placed = [spoilt(raw, "metadata.namespace", "default") for raw in model()]
    kubectl.apply(*placed)
    with operator_process(
        tmp_path, plane.kubeconfig, "default", watchNamespaces=namespaces
    ) as process:
        process.await_output(WORKS)
        reason = '{.status.conditions[?(@.type=="Ready")].reason}'
        await_status(kubectl, f"{reason}=SubmitterNotAvailable")
        install_spark_crds(kubectl)
        process.await_output("the watch of SparkApplication.sparkoperator.k8s.io started")
        await_status(kubectl, "{.status.currentRun.phase}=Submitted")
        kubectl("delete", "crd", "sparkapplications.sparkoperator.k8s.io")
        install_spark_crds(kubectl)
        text = "the watch of SparkApplication.sparkoperator.k8s.io started"
        process.await_output(text, times=2)


def await_status(kubectl: Kubectl, wanted: str) -> None:
    """Wait for a value in the status of the output `wide`."""
    kubectl(
        "wait", "outputdataset/wide", "-n", "default", f"--for=jsonpath={wanted}", "--timeout=60s"
    )


def test_a_standby_is_alive_by_no_probe_and_not_ready_until_it_leads(
    spark_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    place = (spark_plane.kubeconfig, namespace)
    with operator_process(tmp_path / "first", *place) as first, ExitStack() as stack:
        first.await_output(WORKS)
        second = stack.enter_context(operator_process(tmp_path / "second", *place))
        second.await_output("metrics on port")
        assert second.status("readiness", "/readyz") == 503
        assert second.status("health", "/healthz") == 0
        first.process.send_signal(signal.SIGTERM)
        second.await_output(WORKS)
        second.await_output("the watch of")
        assert second.status("readiness", "/readyz") == second.status("health", "/healthz") == 200


def test_an_end_among_many_objects_logs_short_lines(spark_plane, namespace, tmp_path, kubectl):
    many = [spoilt(files(f"s{number}"), "metadata.namespace", namespace) for number in range(500)]
    kubectl.apply(*many)
    with operator_process(tmp_path, spark_plane.kubeconfig, namespace) as process:
        process.await_output(WORKS)
        process.process.send_signal(signal.SIGTERM)
        assert process.ended() == 0
    lines = process.output.splitlines()
    assert all(len(line) < 1_000 and json.loads(line)["level"] == "info" for line in lines)


def unlisted() -> Feed:
    return Feed(Store(), FakeCluster(), KINDS, (), time.monotonic)


async def test_the_name_for_tls_of_a_kubeconfig_is_checked(spark_plane, tmp_path):
    known = yaml.safe_load(spark_plane.kubeconfig.read_text())
    known["clusters"][0]["cluster"]["tls-server-name"] = "nobody.example"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(known))
    server, session = await watching_session(kubeconfig, None, "test", unlisted())
    async with session:
        with pytest.raises(ClientConnectorCertificateError):
            await session.get(f"{server}/api")


def test_kopf_is_given_no_handler_that_writes() -> None:
    registry = kopf.OperatorRegistry()
    add_process_handlers(registry, handlers.Connection(None, None, "test"), asyncio.Event().wait)
    add_event_handlers(registry, KINDS)
    for of_writes in (registry._changing, registry._spawning, registry._indexing):
        assert list(of_writes.get_all_handlers()) == []
    for handler in registry._watching.get_all_handlers():
        assert inspect.iscoroutinefunction(handler.fn)
        assert inspect.get_annotations(handler.fn, eval_str=True)["return"] is None
    assert "await " not in inspect.getsource(changed)


def test_the_memo_of_kopf_stays_the_same_for_every_object() -> None:
    process: Process[Any] = Process(lambda process: pytest.fail("it is not opened"))
    assert copy.copy(process) is process


def test_every_request_is_tried_again_without_end() -> None:
    waits = Endless()
    first, second = (list(islice(waits, 100)) for _ in range(2))
    assert first == second
    assert first[-1] == handlers.BACKOFFS[-1]
    assert kopf_settings(KINDS).persistence.finalizer == "snaploom.io/kopf"
