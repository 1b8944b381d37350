"""Chart, example and real Spark in real pods on a real cluster, until all is uninstalled.

A person installs the chart, applies the flights example, and lives with it until all is gone again.
The tests are in the order of this story, as a chain of fixtures: each sees the cluster as the one
before left it. Any cluster will do: docs/how-to/run-a-cluster.md.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.cluster.chart import NAMESPACE
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.wholecluster import (
    PATIENCE,
    Raw,
    Stages,
    WholeCluster,
    whole_cluster,
)
from support.cluster.wholeflights import (
    CONSOLE,
    EXAMPLE,
    INDEX,
    OUTPUT,
    PLACE,
    SOURCE_INDEX,
    Bucket,
    Flights,
    documents,
    in_bucket,
    upload,
)
from support.documentation.commands import wait_until
from support.documentation.examples import Example, copy_example, published_files
from support.servers import s3servers
from support.servers.databases import fetched_jars
from support.servers.postgresserver import Postgres
from support.servers.s3servers import BUCKET, SECRET_KEY, running_versitygw
from support.servers.storefixtures import running_catalog
from support.weaving.oldspark import DUCKDB_READER

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd_name

FOLDERS = ("sources", "wide", "indexes")


@dataclass(frozen=True)
class Kept:
    """What outlives an upgrade of the chart: values by what they are of."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, flights: Flights) -> Kept:
        """What there is now: kinds, resources, their statuses, ConfigMaps, published files."""
        return cls(dict(_values(flights)))

    def lost(self, later: Kept) -> list[str]:
        """What is no longer there, or has another value; what has come is none of it."""
        return [
            f"{name}: {value} before, {later.values.get(name)} after"
            for name, value in self.values.items()
            if later.values.get(name) != value
        ]


def _values(flights: Flights) -> Iterator[tuple[str, Any]]:
    kubectl = flights.whole.cluster.kubectl
    for kind in map(crd_name, KINDS):
        yield f"{kind}: UID", kubectl.get("crd", kind)["metadata"]["uid"]
        for each in flights.list(kind):
            name = f"{kind}/{each['metadata']['name']}"
            yield f"{name}: UID", each["metadata"]["uid"]
            yield f"{name}: spec", each["spec"]
            for field, value in each.get("status", {}).items():
                yield f"{name}: status.{field}", value
    for each in flights.list("configmaps"):
        yield f"configmap/{each['metadata']['name']}", each.get("data")
    for folder in FOLDERS:
        for path in flights.files(folder):
            yield path, "file"


def raised_chart(chart: Path, folder: Path) -> Path:
    """A copy of a chart, a folder or an archive, with a version above all others."""
    raised = folder / "snaploom"
    if chart.is_dir():
        shutil.copytree(chart, raised)
    else:
        with tarfile.open(chart) as opened:
            opened.extractall(folder, filter="data")
    about = raised / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version: .*", "version: 99.0.0", about.read_text("utf-8")))
    return raised


pytestmark = [pytest.mark.whole, pytest.mark.slow, pytest.mark.timeout(1800)]
MARCH = "2013-03-31T00:00:00Z"
NATIVE = "outputdataset/flights-native"
NAMESPACES = ("flights", "flights-bucket")
"""In which jobs run."""
ALLOWED = ["spark.eventLog.", "spark.jars", "spark.memory.offHeap.", "spark.sql.catalog."]
"""Settings of Spark that outputs may have beyond the list."""
RUNNING_EXECUTORS = (
    "--selector=snaploom.io/role=executor",
    "--field-selector=status.phase=Running",
)
EVENTS = "native-events"
NATIVE_SPARK = {
    "accelerator": "COMET",
    "dynamicAllocation": {"initialExecutors": 2, "minExecutors": 2, "maxExecutors": 3},
    "sparkConf": {
        "spark.kubernetes.executor.deleteOnTermination": "false",
        # So little that shuffles write to disks before their end.
        "spark.memory.offHeap.size": "8m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{PLACE}/{EVENTS}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    },
}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Example:
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
    printed = applied.python(Path(__file__).with_name("wholequery.py"), PLACE)
    found: dict[str, dict[str, int]] = json.loads(printed.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def kept(applied: Flights, answers: Raw) -> Kept:
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
    settings = {"logs": {"level": "debug"}, "allow": {"sparkConf": ALLOWED}}
    with stages.stage("chart upgraded"):
        installed.upgrade(chart, settings, *NAMESPACES)
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


@dataclass(frozen=True)
class Native:
    """A run with the accelerator, as the cluster showed it."""

    output: Raw
    report: Raw
    executors: list[Raw]
    killed: str
    """The executor that was killed when it had written files of a shuffle."""
    tasks: list[Raw]
    """What Spark recorded of each task."""


@pytest.fixture(scope="module")
def native(upgraded: Flights, third: Raw, stages: Stages,
           tmp_path_factory: pytest.TempPathFactory) -> Native:  # fmt: skip
    """The output once more, woven natively with little memory by executors, one of them killed."""
    upgraded.kubectl("exec", CONSOLE, "--", "mkdir", f"{PLACE}/{EVENTS}")
    upgraded.apply(another_output("native", NATIVE_SPARK))
    with stages.stage("snapshots woven natively"):
        killed = kill_in_a_shuffle(upgraded)
        upgraded.wait(NATIVE)
    upgraded.await_end_of_run(NATIVE)
    output = upgraded.get(NATIVE)
    written = upgraded.get(f"configmap/{output['status']['lastRun']['id']}-report")
    report = json.loads(written["data"]["report.json"])
    logged = upgraded.copy_out(EVENTS, tmp_path_factory.mktemp("events") / EVENTS).iterdir()
    events = [json.loads(line) for path in logged for line in path.open(encoding="utf-8")]
    tasks = [each for each in events if each["Event"] == "SparkListenerTaskEnd"]
    found = Native(output, report, pods_of(upgraded, output, "executor"), killed, tasks)
    upgraded.kubectl("delete", NATIVE)
    return found


@pytest.fixture(scope="module")
def read_elsewhere(upgraded: Flights, bucket: Bucket, postgres: Postgres, stages: Stages,
                   tmp_path_factory: pytest.TempPathFactory) -> Path:  # fmt: skip
    """The output as a table of a catalog, which DuckDB has copied in a pod of its own to a file."""
    flights, folder = bucket.flights, tmp_path_factory.mktemp("catalog")
    (jar,) = fetched_jars("tables").glob("iceberg-spark-runtime-*.jar")
    program = shutil.copytree(s3servers.installed("apart", "duckdbtables"), folder / "duckdb",
                              ignore=shutil.ignore_patterns("*delta*"))  # fmt: skip
    flights.open_console()
    for copied in (jar, program):
        flights.copy_in(copied)
    with running_catalog(folder, postgres, flights.whole.host, bucket.server) as catalog:
        spark = {
            "spark.jars": f"local://{PLACE}/{jar.name}",
            "spark.sql.catalog.lake.type": "rest",
            "spark.sql.catalog.lake.uri": catalog.endpoint,
            # Iceberg's own client of S3 needs more of Amazon's SDK than is in the image.
            "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        }
        output = another_output("table", {"executor": {"instances": 0}, "sparkConf": spark})
        output["spec"]["outputFolder"] |= {
            "dataFormat": "ICEBERG", "table": {"catalog": "lake", "name": "flights.wide"}
        }  # fmt: skip
        mounts = output["spec"]["run"]["spark"]["podTemplate"]
        secret, declared = in_bucket([output], bucket.server)
        settings = declared["spec"]["run"]["spark"]
        flights.open_reader(settings["podTemplate"])
        settings["podTemplate"] |= mounts
        flights.apply(secret, declared)
        with stages.stage("table of a catalog"):
            flights.wait("outputdataset/flights-table")
        arguments = (f"{PLACE}/{program.name}", "flights.wide", catalog.endpoint)
        flights.run_in_reader(DUCKDB_READER, *arguments, f"{PLACE}/read.parquet")
    return flights.copy_out("read.parquet", folder / "read.parquet")


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


def kill_in_a_shuffle(flights: Flights) -> str:
    """Kill an executor of the native run as soon as it has written rows of a shuffle; its name."""
    look = "find / -path /proc -prune -o -name 'shuffle_*.data*' -size +0 -print 2>/dev/null; true"
    killed: list[str] = []

    def is_killed() -> bool:
        listed = flights.kubectl("get", "pods", *RUNNING_EXECUTORS, "--output=name")
        for name in listed.split():
            with suppress(KubectlFailed):  # not yet started, or files that went while it looked
                if flights.kubectl("exec", name, "--", "sh", "-c", look):
                    flights.kubectl("delete", name, "--grace-period=0", "--force")
                    killed.append(name.removeprefix("pod/"))
                    return True
        return False

    wait_until(is_killed)
    return killed[0]


def another_output(name: str, spark: Raw) -> Raw:
    """The example's output with another name and folder, and these settings of its runs."""
    (declared,) = (each for each in documents(EXAMPLE) if each["kind"] == "OutputDataset")
    declared["metadata"]["name"] = f"flights-{name}"
    declared["spec"]["outputFolder"]["folderUri"] = f"file://{PLACE}/{name}/"
    declared["spec"]["run"]["spark"] |= spark
    return declared


def january(local: Example) -> dict[str, Path]:
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


JANUARY, FEBRUARY, MARCH = (f"2013-{day}T00:00:00Z" for day in ("01-31", "02-28", "03-31"))
ROWS = {JANUARY: 27_004, FEBRUARY: 24_951, MARCH: 28_834}
COLUMNS = "data, airline, destination, list_sort(legs) AS legs, origin, plane, weather"


def snapshots(output: Raw) -> dict[str, int]:
    return {each["time"]: each["rows"] for each in output["status"]["snapshots"]}


def conditions(resource: Raw) -> dict[str, str]:
    return {each["type"]: each["status"] for each in resource["status"]["conditions"]}


def pods_of(flights: Flights, output: Raw, role: str) -> list[Raw]:
    run = output["status"]["lastRun"]["id"]
    selected = f"--selector=snaploom.io/role={role},snaploom.io/run={run}"
    found: list[Raw] = json.loads(flights.kubectl("get", "pods", selected, "-o", "json"))["items"]
    return found


def driver_of(flights: Flights, output: Raw) -> Raw:
    (found,) = pods_of(flights, output, "driver")
    return found


def images_of(pod: Raw) -> set[str]:
    return {each["image"] for each in pod["spec"]["containers"]}


def differences(ours: list[str], theirs: list[str]) -> list[tuple[object, ...]]:
    """Rows that only one of two lists of files has."""
    with duckdb.connect() as connection:
        for name, files in (("ours", ours), ("theirs", theirs)):
            read = f"SELECT {COLUMNS} FROM read_parquet({files}, hive_partitioning = false)"
            connection.execute(f"CREATE TABLE {name} AS {read}")
        found = []
        for one, other in (("ours", "theirs"), ("theirs", "ours")):
            rows = connection.execute(f"FROM {one} EXCEPT ALL FROM {other} LIMIT 3")
            found += rows.fetchall()
        return found


def test_first_run_publishes_what_there_is(first: Raw) -> None:
    assert snapshots(first) == {time: ROWS[time] for time in (FEBRUARY, JANUARY)}
    assert first["status"]["latestSnapshot"]["time"] == FEBRUARY
    last = first["status"]["lastRun"]
    assert (last["phase"], last["published"], last["attempt"]) == ("Succeeded", 2, 0)
    assert conditions(first)["Ready"] == "True"


def test_run_was_a_spark_application_of_the_account_of_jobs(applied: Flights, first: Raw) -> None:
    run = applied.get(f"sparkapplication/{first['status']['lastRun']['id']}")
    assert run["status"]["applicationState"]["state"] == "COMPLETED"
    assert run["spec"]["driver"]["serviceAccount"] == "snaploom-spark"
    assert len(run["status"]["executorState"]) == 1
    driver = driver_of(applied, first)
    assert driver["spec"]["serviceAccountName"] == "snaploom-spark"
    assert images_of(driver) == {applied.whole.first.spark_image}
    # The application is over before the kubelet reports the pod's end.
    applied.wait(f"pod/{driver['metadata']['name']}", "jsonpath={.status.phase}=Succeeded")


def test_events_show_the_run(applied: Flights, first: Raw) -> None:
    run = first["status"]["lastRun"]["id"]
    events = applied.list("events.events.k8s.io")
    about = [each for each in events if each["regarding"]["kind"] == "OutputDataset"]
    reasons = sorted(each["reason"] for each in about if run in each["note"])
    assert reasons == ["RunStarted", "RunSucceeded"]


def test_people_see_it_with_kubectl_and_with_our_command(applied: Flights, first: Raw) -> None:
    line = applied.kubectl("get", OUTPUT, "--no-headers")
    assert line.split()[:3] == ["flights-wide", "True", "Published"]
    tree = applied.snaploom("status", "flights-wide")
    assert tree.startswith("OutputDataset/flights-wide  Ready (Published)")
    assert f"last run: {first['status']['lastRun']['id']}  Succeeded" in tree
    assert f"{FEBRUARY}  24,951 rows" in tree


def test_published_rows_are_those_of_a_run_on_a_laptop(applied, first, local, tmp_path):
    there = published_files(applied.copy_out("wide", tmp_path / "wide"))
    here = published_files(local.folder / "wide")
    assert list(there) == [JANUARY, FEBRUARY]
    assert [differences(there[time], here[time]) for time in there] == [[], []]


def test_logs_of_a_run_are_those_of_operator_and_driver(applied: Flights, first: Raw) -> None:
    lines = applied.snaploom("logs", "flights-wide").splitlines()
    run = first["status"]["lastRun"]["id"]
    assert any(f" operator INFO    run {run}" in line for line in lines)
    assert any(" driver   INFO    published" in line for line in lines)


@pytest.mark.in_a_bucket
def test_rows_in_a_bucket_are_the_same(bucket: Bucket, local: Example, tmp_path: Path) -> None:
    assert snapshots(bucket.flights.get(OUTPUT)) == {JANUARY: ROWS[JANUARY]}
    there = published_files(bucket.folder / "flights" / "wide")
    here = published_files(local.folder / "wide")
    assert differences(there[JANUARY], here[JANUARY]) == []


@pytest.mark.in_a_bucket
def test_keys_of_the_bucket_are_shown_nowhere(bucket: Bucket) -> None:
    flights = bucket.flights
    kinds = "snaploom,sparkapplications,configmaps,pods,events.events.k8s.io"
    assert SECRET_KEY not in flights.kubectl("get", kinds, "--output", "yaml")
    driver = driver_of(flights, flights.get(OUTPUT))
    log = flights.kubectl("logs", driver["metadata"]["name"])
    assert "published" in log
    assert SECRET_KEY not in log


def test_indexes_of_an_output_and_of_a_source_are_built(indexed: dict[str, Raw]) -> None:
    output, source = (indexed[name]["status"] for name in (INDEX, SOURCE_INDEX))
    assert (output["state"], source["state"]) == ("active", "active")
    assert output["files"]["indexed"] >= 2
    assert source["files"] == {"indexed": 2, "stale": 0, "missing": 0}


@pytest.mark.parametrize("place", ["output", "source"])
def test_query_in_a_pod_opens_only_files_that_matter(answers, place):
    answer = answers[place]
    assert answer["rows"] == 6_099
    assert 0 < answer["opened"] < answer["files"]


def test_webhook_refuses_what_is_wrong(installed: WholeCluster, applied: Flights) -> None:
    installed.await_webhook()
    with pytest.raises(KubectlFailed, match="the folder must be absolute"):
        applied.patch(OUTPUT, outputFolder={"folderUri": "relative/"})


def test_upgrade_of_the_chart_keeps_what_there_is_and_starts_no_run(upgraded, kept, installed):
    assert kept.lost(Kept.of(upgraded)) == []
    settings = installed.release.stored("configmap", "snaploom-settings")
    assert "logLevel: debug" in settings["data"]["settings.yaml"]


def test_schedule_publishes_what_has_come_and_the_oldest_goes(third: Raw) -> None:
    assert snapshots(third) == {time: ROWS[time] for time in (MARCH, FEBRUARY)}
    assert conditions(third)["Ready"] == "True"


def test_index_follows_the_publication(applied: Flights, third: Raw) -> None:
    applied.await_end_of_run(INDEX)
    status = applied.get(INDEX)["status"]
    assert status["lastRun"]["phase"] == "Succeeded"
    assert status["files"]["stale"] == status["files"]["missing"] == 0


def test_run_after_an_upgrade_has_the_newer_image(upgraded, third, installed):
    assert images_of(driver_of(upgraded, third)) == {installed.newer.spark_image}


def test_accelerated_run_has_its_image_and_native_memory(native, installed):
    """600 MiB of heap, 384 of overhead, and 8 of native memory."""
    assert len(native.executors) >= 2
    for pod in native.executors:
        assert images_of(pod) == {installed.newer.comet_image}
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["requests"]["memory"] == "992Mi"
    assert (native.report["accelerator"], native.report["sparkVersion"]) == ("COMET 1.2.0", "4.1.4")
    assert "Unsupported file format CSV" in native.report["fallbacks"]


def test_natively_woven_rows_are_those_of_a_run_on_a_laptop(upgraded, native, local, tmp_path):
    there = published_files(upgraded.copy_out("native", tmp_path / "native"))
    here = published_files(local.folder / "wide")
    assert snapshots(native.output) == ROWS
    assert [differences(there[time], here[time]) for time in ROWS] == [[], [], []]


def test_native_run_spills_and_outlives_a_killed_executor(native: Native) -> None:
    metrics = [each.get("Task Metrics") or {} for each in native.tasks]
    assert sum(each.get("Disk Bytes Spilled", 0) for each in metrics) > 0
    assert native.killed not in {pod["metadata"]["name"] for pod in native.executors}
    assert native.output["status"]["lastRun"]["attempt"] == 0


@pytest.mark.in_a_bucket
def test_table_of_a_catalog_is_read_by_a_pod_that_knows_nothing_of_us(read_elsewhere, local):
    here = published_files(local.folder / "wide")
    assert differences([str(read_elsewhere)], here[JANUARY]) == []


def test_retained_index_stays_and_deleted_output_has_no_files(deleted: Flights) -> None:
    assert len({path.split("/")[1] for path in deleted.files("indexes")}) == 2
    assert deleted.files("wide") == []
    assert deleted.files("sources") != []


def test_nothing_of_a_deleted_output_is_left_in_the_cluster(deleted: Flights) -> None:
    kinds = "sparkapplications,configmaps,leases"
    deleted.kubectl("wait", kinds, "--selector=snaploom.io/kind=OutputDataset", "--for=delete",
                    "--timeout=60s")  # fmt: skip


def test_uninstalled_it_leaves_what_keep_keeps(before: set[str], uninstalled: set[str]) -> None:
    left = [tuple(line.split()) for line in uninstalled - before]
    whose = {"<none>", NAMESPACE}
    assert {each for each in left if each[1] in whose and each[0] != "PersistentVolume"} == {
        ("CustomResourceDefinition", "<none>", crd_name(kind)) for kind in KINDS
    }
    assert {each[0] for each in left} & {"Role", "RoleBinding", "ServiceAccount"} == set()
