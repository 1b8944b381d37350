"""The scenario that the tests of this folder check, as a chain: each part begins where one ended.

A person installs the chart, applies the flights example, and lives with it until all is gone again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cluster.chart import NAMESPACE
from support.cluster.stages import Stages
from support.cluster.upgrades import Kept, raised_chart
from support.cluster.wholebucket import Bucket, in_bucket, upload
from support.cluster.wholecluster import PATIENCE, Raw, WholeCluster, whole_cluster
from support.cluster.wholeflights import (
    EXAMPLE,
    INDEX,
    OUTPUT,
    PLACE,
    SOURCE_INDEX,
    Flights,
    documents,
)
from support.documentation.examples import Example, copy_example
from support.servers.s3servers import BUCKET, running_versitygw

MARCH = "2013-03-31T00:00:00Z"
NAMESPACES = ("flights", "flights-bucket")
"""In which jobs run."""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The same declarations, woven on this machine."""
    example = copy_example("flights", tmp_path_factory.mktemp("local"))
    example.run("python examples/flights/data.py")
    example.run("snaploom run flights-wide -f examples/flights")
    return example


@pytest.fixture(scope="module")
def stages() -> Stages:
    return Stages()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, stages: Stages) -> Iterator[WholeCluster]:
    with whole_cluster(tmp_path_factory.mktemp("whole"), stages) as found:
        found.create_namespaces(NAMESPACE, *NAMESPACES)
        yield found
        found.cluster.kubectl("delete", "namespace", NAMESPACE, *NAMESPACES, "--wait=false")


@pytest.fixture(scope="module")
def before(whole: WholeCluster) -> set[str]:
    """What was in the cluster before us."""
    return everything(whole)


@pytest.fixture(scope="module")
def installed(whole: WholeCluster, before: set[str], stages: Stages) -> WholeCluster:
    with stages.stage("chart installed"):
        whole.install(*NAMESPACES)
    return whole


@pytest.fixture(scope="module")
def applied(installed: WholeCluster, local: Example, tmp_path_factory: pytest.TempPathFactory,
            stages: Stages) -> Flights:  # fmt: skip
    """Two months of data, and the example; one old snapshot is kept beside the latest."""
    flights = Flights(installed)
    with stages.stage("data copied into a volume"):
        flights.open_console()
        flights.copy_in(months(local, tmp_path_factory.mktemp("months"), later=False))
    declared = documents(EXAMPLE)
    for each in declared:
        if each["kind"] == "OutputDataset":
            each["spec"]["outputFolder"]["snapshotAutoDelete"] = {"maxOldSnapshots": 1}
    flights.apply(*declared)
    return flights


@pytest.fixture(scope="module")
def first(applied: Flights, stages: Stages) -> Raw:
    """The output after its first run."""
    with stages.stage("first snapshots"):
        applied.wait(OUTPUT)
    return applied.get(OUTPUT)


@pytest.fixture(scope="module")
def bucket(first: Raw, installed: WholeCluster, local: Example, stages: Stages,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:  # fmt: skip
    folder = tmp_path_factory.mktemp("bucket")
    flights = Flights(installed, "flights-bucket")
    with running_versitygw(folder, installed.host) as server:
        upload(server, january(local))
        flights.apply(*in_bucket(documents(EXAMPLE), server))
        with stages.stage("first snapshot in a bucket"):
            flights.wait(OUTPUT)
        yield Bucket(flights, server, folder / "buckets" / BUCKET)


@pytest.fixture(scope="module")
def indexed(applied: Flights, first: Raw, stages: Stages) -> dict[str, Raw]:
    """The index of the output, which followed it, and one of a source."""
    (example,) = (each for each in documents(EXAMPLE) if each["kind"] == "SkippingIndex")
    spec = example["spec"] | {
        "target": {"dataSource": "flights"},
        "indexes": [{"type": "MIN_MAX", "column": "time_hour"}],
        "refresh": {"trigger": "MANUAL"},
    }
    name = SOURCE_INDEX.partition("/")[2]
    with stages.stage("two indexes built"):
        applied.apply(example | {"metadata": {"name": name}, "spec": spec})
        applied.wait(INDEX)
        applied.wait(SOURCE_INDEX)
    return {name: applied.get(name) for name in (INDEX, SOURCE_INDEX)}


@pytest.fixture(scope="module")
def answers(applied: Flights, indexed: dict[str, Raw]) -> dict[str, dict[str, int]]:
    """What queries printed in a pod."""
    printed = applied.python(Path(__file__).with_name("query.py"), PLACE)
    found: dict[str, dict[str, int]] = json.loads(printed.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def kept(applied: Flights, answers: Raw) -> Kept:
    """What an upgrade must keep, before it."""
    for resource in (OUTPUT, INDEX, SOURCE_INDEX):
        applied.await_end_of_run(resource)
    return Kept.of(applied)


@pytest.fixture(scope="module")
def upgraded(applied: Flights, kept: Kept, installed: WholeCluster, stages: Stages,
             tmp_path_factory: pytest.TempPathFactory) -> Flights:  # fmt: skip
    """A newer chart and newer images, with another setting.

    Without an earlier release to begin with they are the same, under a higher number.
    """
    chart = installed.newer.chart
    if installed.newer == installed.first:
        chart = raised_chart(chart, tmp_path_factory.mktemp("chart"))
    with stages.stage("chart upgraded"):
        installed.upgrade(chart, {"logs": {"level": "debug"}}, *NAMESPACES)
    return applied


@pytest.fixture(scope="module")
def third(upgraded: Flights, local: Example, stages: Stages,
          tmp_path_factory: pytest.TempPathFactory) -> Raw:  # fmt: skip
    """The output after another month of data, found by its schedule only."""
    upgraded.copy_in(months(local, tmp_path_factory.mktemp("months"), later=True))
    with stages.stage("next snapshot by schedule"):
        upgraded.patch(OUTPUT, run={"schedule": {"cron": "* * * * *"}})
        upgraded.wait(OUTPUT, "jsonpath={.status.latestSnapshot.time}=" + MARCH)
    upgraded.patch(OUTPUT, run={"schedule": None})
    upgraded.await_end_of_run(OUTPUT)
    upgraded.wait(OUTPUT)
    return upgraded.get(OUTPUT)


@pytest.fixture(scope="module")
def deleted(upgraded: Flights, third: Raw, stages: Stages) -> Flights:
    """An index that keeps its files, and an output whose data is deleted with it."""
    upgraded.kubectl("delete", SOURCE_INDEX)
    upgraded.patch(OUTPUT, run={"deletionPolicy": "Delete"})
    upgraded.wait(OUTPUT, "jsonpath={.metadata.finalizers[0]}=snaploom.io/finalizer")
    with stages.stage("output deleted with its data"):
        upgraded.kubectl("delete", OUTPUT, "--wait=false")
        upgraded.wait(OUTPUT, "delete")
    return upgraded


@pytest.fixture(scope="module")
def uninstalled(deleted: Flights, installed: WholeCluster, stages: Stages) -> set[str]:
    """What is in the cluster after us."""
    with stages.stage("chart uninstalled"):
        installed.release.uninstall()
        kinds = "pods,replicasets.apps,leases"
        installed.cluster.kubectl("wait", kinds, "--all", "--for=delete", PATIENCE, "-n", NAMESPACE)
    return everything(installed)


def january(local: Example) -> dict[str, Path]:
    """The sources of January by their keys in a bucket."""
    paths = (path for path in sorted(local.folder.rglob("sources/**/*.*")) if path.is_file())
    by_key = {f"flights/{path.relative_to(local.folder)}": path for path in paths}
    return {key: path for key, path in by_key.items() if "2013-01" in key}


def months(local: Example, folder: Path, *, later: bool) -> Path:
    """The sources of March, or those of all that was before."""
    sources = local.folder / "sources"
    for path in (path.relative_to(sources) for path in sources.rglob("*") if path.is_file()):
        if ("2013-03" in str(path)) == later:
            copied = folder / "sources" / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(sources / path, copied)
    return folder / "sources"


def everything(whole: WholeCluster) -> set[str]:
    """Kind, namespace and name of all there is, except what Kubernetes makes by itself."""
    kubectl = whole.cluster.kubectl
    kinds = kubectl("api-resources", "--verbs=list", "--output=name").split()
    asked = [
        kind
        for kind in kinds
        if not kind.startswith(("apiservices", "events", "endpoint", "component"))
    ]
    columns = "custom-columns=KIND:.kind,IN:.metadata.namespace,NAME:.metadata.name"
    listed = kubectl("get", ",".join(asked), "--all-namespaces", "--no-headers", "-o", columns)
    lines = (" ".join(line.split()) for line in listed.splitlines())
    return {line for line in lines if not line.endswith((" default", " kube-root-ca.crt"))}
