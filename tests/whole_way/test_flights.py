"""Chart, example and real Spark in real pods on a real cluster, until all is uninstalled.

The tests are in the order of a story (`conftest.py`); each sees the cluster as the one before left
it. Any cluster will do: docs/how-to/run-a-real-cluster.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from support.cluster.chart import NAMESPACE
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.upgrades import Kept
from support.cluster.wholebucket import Bucket
from support.cluster.wholecluster import Raw, WholeCluster
from support.cluster.wholeflights import INDEX, OUTPUT, SOURCE_INDEX, Flights
from support.documentation.examples import Example, published_files
from support.servers.s3servers import SECRET_KEY

from snaploom.models.crds import crd_name
from snaploom.models.kinds import KINDS

pytestmark = [pytest.mark.whole, pytest.mark.slow, pytest.mark.timeout(1800)]

JANUARY, FEBRUARY, MARCH = (f"2013-{day}T00:00:00Z" for day in ("01-31", "02-28", "03-31"))
ROWS = {JANUARY: 27_004, FEBRUARY: 24_951, MARCH: 28_834}
COLUMNS = "data, airline, destination, list_sort(legs) AS legs, origin, plane, weather"


def snapshots(output: Raw) -> dict[str, int]:
    """Rows by time, as a status shows them."""
    return {each["time"]: each["rows"] for each in output["status"]["snapshots"]}


def conditions(resource: Raw) -> dict[str, str]:
    return {each["type"]: each["status"] for each in resource["status"]["conditions"]}


def driver_of(flights: Flights, output: Raw) -> Raw:
    """The driver's pod of the last run of an output, which stays after its end."""
    run = output["status"]["lastRun"]["id"]
    selected = f"--selector=snaploom.io/role=driver,snaploom.io/run={run}"
    (found,) = json.loads(flights.kubectl("get", "pods", selected, "--output", "json"))["items"]
    driver: Raw = found
    return driver


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
    assert set(run["status"]["executorState"].values()) <= {"COMPLETED", "UNKNOWN"}
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


def test_published_rows_are_those_of_a_run_on_a_laptop(
    applied: Flights, first: Raw, local: Example, tmp_path: Path
) -> None:
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
def test_query_in_a_pod_opens_only_files_that_matter(
    answers: dict[str, dict[str, int]], place: str
) -> None:
    answer = answers[place]
    assert answer["rows"] == 6_099
    assert 0 < answer["opened"] < answer["files"]


def test_webhook_refuses_what_is_wrong(installed: WholeCluster, applied: Flights) -> None:
    installed.await_webhook()
    with pytest.raises(KubectlFailed, match="the folder must be absolute"):
        applied.patch(OUTPUT, outputFolder={"folderUri": "relative/"})


def test_upgrade_of_the_chart_keeps_what_there_is_and_starts_no_run(
    upgraded: Flights, kept: Kept, installed: WholeCluster
) -> None:
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


def test_run_after_an_upgrade_has_the_newer_image(
    upgraded: Flights, third: Raw, installed: WholeCluster
) -> None:
    assert images_of(driver_of(upgraded, third)) == {installed.newer.spark_image}


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
