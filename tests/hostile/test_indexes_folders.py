"""Folders of indexes that an enemy prepared: every command and every query ends, and that is all.

Good folders are mutated, hundreds of ways, and each is given to every command about indexes and to
what a query does, in a process with little memory (`support.hostile.indexworker`). Beside them are
another index and canaries, which must stay as they are.
"""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from select import select

import pytest
from pyspark.sql import SparkSession
from support.hostile.indexfolders import NEIGHBOUR_URI, Mutation, Place, make_good, mutations
from support.hostile.listener import listening
from support.skipping.fakeopensearch import FakeOpenSearch, options_of, serving
from support.skipping.faketarget import FakeTarget
from support.skipping.indexinterfaces import Lake
from support.skipping.indexstores import URI, committed, write

from snaploom.errors import (
    IndexNotFound,
    IndexNotPossible,
    IndexUnreadable,
    SkippingError,
    SnaploomError,
)
from snaploom.files.local import LocalObjectStore
from snaploom.models.skippingindex import Index, IndexState
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.store import OWN_INDEX, OpenSearchIndexStore
from snaploom.skipping import disable, enable
from snaploom.skipping.core.definition import SkippingDefinition, Target
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.operations import create, drop, refresh, vacuum
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.stores.catalog import LOCATIONS, FolderBase
from snaploom.skipping.stores.port import StoredState, target_key

PROVING = os.environ.get("SNAPLOOM_PROVE") == "1"
OF_BYTES, OF_JSON, SHARES = (3000, 3000, 40) if PROVING else (15, 15, 1)
SEED = 20261123
SECONDS = 200
"""Longest time of one folder: ten commands, each of which ends itself after twenty seconds."""


class Worker:
    """The process that opens hostile folders; a new one when it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def judge(self, folder: Path) -> dict[str, object]:
        """What came of each command, or how the process died."""
        process = self._process or subprocess.Popen(
            [sys.executable, "-m", "support.hostile.indexworker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        self._process = process
        assert process.stdout is not None
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        ready, _, _ = select([process.stdout], [], [], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            found: dict[str, object] = json.loads(line)
            return found
        self.close()
        return {"died": f"{process.returncode}", "folder": str(folder)}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_good(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def contents(folder: Path) -> str:
    """A hash of everything in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def beside(place: Place) -> dict[str, str]:
    """What is not the enemy's: the canaries, and in the base the neighbour with its directory."""
    mine = (place.index.name, ".snaploom-tmp")
    others = [path for path in place.base.iterdir() if path.name not in mine and path.is_dir()]
    return {path.name: contents(path) for path in [place.canaries, *others]}


def faults_of(mutation: Mutation, good: Place, worker: Worker, folder: Path) -> list[str]:
    """What happened that must not."""
    shutil.copytree(good.root, folder)
    place = Place(folder)
    mutation.change(place)
    before = beside(place)
    found = worker.judge(folder)
    faults = [f"{mutation.name}: {found}"] if "died" in found else []
    outcomes = found.get("outcomes", {})
    for command, outcome in outcomes.items():
        if "CRASH" in outcome["ended"] or outcome["ended"] == "too slow":
            faults.append(f"{mutation.name}: {command}: {outcome}")
    if found.get("events"):
        faults.append(f"{mutation.name}: {found['events']}")
    if beside(place) != before:
        faults.append(f"{mutation.name}: what lies outside was changed")
    shutil.rmtree(folder)
    return faults


def test_a_good_folder_is_used_by_every_command(good, worker, tmp_path):
    shutil.copytree(good.root, tmp_path / "copy")
    found = worker.judge(tmp_path / "copy")
    outcomes = found["outcomes"]
    assert {name: each["ended"] for name, each in outcomes.items()} == {
        **dict.fromkeys(outcomes, "exit 0"),
        "query": "used",
        "import": "done",
        "refresh": "done",
    }
    assert found["events"] == []


@pytest.mark.timeout(7200 if PROVING else 600)
@pytest.mark.parametrize("share", range(SHARES))
def test_no_hostile_folder_does_anything_but_fail(good, worker, tmp_path, share):
    faults = [
        fault
        for mutation in mutations(SEED, OF_BYTES, OF_JSON)[share::SHARES]
        for fault in faults_of(mutation, good, worker, tmp_path / mutation.name)
    ]
    assert faults == []


KEY = target_key(URI)


@pytest.fixture
def client() -> Iterator[OpenSearchClient]:
    with serving(FakeOpenSearch()) as port, OpenSearchClient(options_of(port)) as made:
        yield made


def forge(client: OpenSearchClient, **changes: object) -> None:
    found = client.get(OWN_INDEX, KEY)
    document = {**found.source["document"], **changes}
    assert client.put(OWN_INDEX, KEY, {**found.source, "document": document}, found)


def dropped(client: OpenSearchClient) -> OpenSearchIndexStore:
    store = OpenSearchIndexStore(client, key=KEY)
    committed(store, *write(store, {"a": (1, 5)}))
    drop(store)
    return store


@pytest.mark.parametrize(
    "name",
    ["customers", "*", "_all", "flint_*_skipping_index", "a,b", "flint_x_skipping_index,customers",
     "flint_path_0_skipping_index", "-x", "flint_/../customers_skipping_index", 5, ["customers"]],
)  # fmt: skip
def test_vacuum_deletes_no_index_of_others(client: OpenSearchClient, name: object) -> None:
    dropped(client)
    client.create_index("customers", {"properties": {"name": {"type": "keyword"}}})
    client.create_index("flint_path_0_skipping_index", {"properties": {}})
    forge(client, rows=name)
    with pytest.raises(IndexUnreadable):
        vacuum(OpenSearchIndexStore(client, key=KEY))
    assert client.exists("customers")
    assert client.exists("flint_path_0_skipping_index")


def test_vacuum_deletes_no_index_that_has_no_rows_of_ours(client: OpenSearchClient) -> None:
    store = dropped(client)
    client.delete_index(store._name)
    client.create_index(store._name, {"properties": {"name": {"type": "keyword"}}})
    with pytest.raises(SkippingError, match="somebody else"):
        vacuum(OpenSearchIndexStore(client, key=KEY))
    assert client.exists(store._name)


@pytest.mark.parametrize("document", [5, [], None, {"state": 5}, {"state": "["}, {"rows": "x"}])
def test_a_state_of_another_form_is_damaged(client: OpenSearchClient, document: object) -> None:
    dropped(client)
    found = client.get(OWN_INDEX, KEY)
    client.put(OWN_INDEX, KEY, {**found.source, "document": document}, found)
    with pytest.raises(IndexUnreadable):
        OpenSearchIndexStore(client, key=KEY).read()


def test_a_state_of_another_target_is_damaged(client: OpenSearchClient) -> None:
    dropped(client)
    found = client.get(OWN_INDEX, KEY)
    state = found.source["document"]["state"].replace(URI, f"{URI}2")
    forge(client, state=state)
    with pytest.raises(IndexUnreadable, match="damaged"):
        OpenSearchIndexStore(client, key=KEY).read()


# Directories that others read, at the place that the name of a table gives.


def forged(definition: SkippingDefinition) -> SkippingDefinition:
    return replace(definition, form="XSKIPPER", target=Target(URI, table="/data/neighbour"))


def parts(place: Place) -> list[Path]:
    return sorted((place.base / target_key("/data/neighbour")).glob("*.parquet"))


def test_a_directory_of_another_index_is_not_removed(tmp_path, caplog):
    place = make_good(tmp_path)
    before = parts(place)
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(URI)

    def build(state: StoredState) -> StoredState:
        assert state.definition is not None
        return replace(state, phase=IndexState.DELETED, definition=forged(state.definition))

    store._native.commit(build)
    with caplog.at_level(logging.WARNING):
        vacuum(store)
    assert before
    assert parts(place) == before
    assert "another index's" in caplog.text


def test_a_directory_of_another_index_is_not_replaced(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    before = [path.read_bytes() for path in parts(place)]
    base = FolderBase(LocalObjectStore(place.base, create=False))
    target = FakeTarget(columns={"a": "bigint"}, uri="s3a://elsewhere/data/neighbour")
    target.put("f", 1)
    store = base.index(target.uri)
    with pytest.raises(IndexNotPossible, match="belongs to another"):
        create(store, target, Declaration((Index(type="MIN_MAX", column="a"),), form="XSKIPPER"))
    assert [path.read_bytes() for path in parts(place)] == before


def test_who_owns_a_directory_replaces_and_removes_it(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(NEIGHBOUR_URI)
    target = FakeTarget(columns={"a": "bigint"}, uri=NEIGHBOUR_URI)
    target.put("new", 7)
    before = parts(place)
    refresh(store, target)
    assert parts(place) != before
    drop(store)
    vacuum(store)
    assert parts(place) == []
    assert list((place.base / target_key("/data/neighbour")).glob("*")) == []


def test_a_terabyte_beside_the_parts_of_a_directory_is_not_read(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    huge = parts(place)[0].with_name("part-huge.parquet")
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    target = FakeTarget(columns={"a": "bigint"}, uri=NEIGHBOUR_URI)
    target.put("new", 7)
    refresh(FolderBase(LocalObjectStore(place.base, create=False)).index(NEIGHBOUR_URI), target)
    assert not huge.exists()
    assert parts(place)


def test_a_state_that_lies_elsewhere_is_damaged(tmp_path: Path) -> None:
    place = make_good(tmp_path)
    neighbours = place.base / target_key(NEIGHBOUR_URI) / "manifest"
    newest = max(neighbours.glob("*.json"))
    (place.index / "manifest" / newest.name).write_bytes(newest.read_bytes())
    (place.index / "_latest").write_text(json.dumps({"version": int(newest.stem)}))
    store = FolderBase(LocalObjectStore(place.base, create=False)).index(URI)
    with pytest.raises(IndexUnreadable, match="damaged"):
        store.read()


@pytest.mark.parametrize("mode", ["jdbc", "", "full", "/etc/passwd", 5])
def test_a_state_with_a_mode_of_no_refresh_is_damaged(tmp_path: Path, mode: object) -> None:
    place = make_good(tmp_path)
    newest = max((place.index / "manifest").glob("*.json"))
    document = json.loads(newest.read_bytes())
    document["state"]["definition"]["mode"] = mode
    newest.write_text(json.dumps(document))
    with pytest.raises(IndexUnreadable, match="damaged"):
        FolderBase(LocalObjectStore(place.base, create=False)).index(URI).read()


# Forged indexes in Spark's hands: their SQL is judged, their servers are not asked, rows stay.


MARK = "snaploom.hostile.mark"
SQL = f"reflect('java.lang.System', 'setProperty', '{MARK}', 'set') IS NOT NULL"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path).fill()
    spark.conf.set(LOCATIONS, made.base)
    spark._jvm.System.clearProperty(MARK)
    yield made
    spark.conf.unset(LOCATIONS)


def built(spark: SparkSession, lake: Lake) -> IndexBuilder:
    builder = skipping_index(spark, location=lake.base).on_path(lake.data)
    builder = builder.add_min_max("price").add_expression("VALUE_SET", "lower(name)")
    builder.create()
    builder.refresh("FULL")
    return builder


def newest(lake: Lake) -> Path:
    return max(Path(lake.base).glob("*/manifest/*.json"))


def forge_state(
    lake: Lake, change: Callable[[dict[str, dict[str, list[dict[str, object]]]]], None]
) -> None:
    document = json.loads(newest(lake).read_text())
    change(document["state"])
    newest(lake).write_text(json.dumps(document))


def where(state: dict[str, dict[str, object]]) -> None:
    state["definition"]["where"] = SQL


def label(state: dict[str, dict[str, list[dict[str, list[dict[str, object]]]]]]) -> None:
    state["definition"]["indexes"][1]["terms"][0]["label"] = SQL


@pytest.mark.parametrize("change", [where, label])
def test_sql_of_a_forged_state_runs_nothing(spark, lake, change):
    builder = built(spark, lake)
    forge_state(lake, change)
    lake.add("2024-02-01", 7)
    with pytest.raises(SnaploomError):
        builder.refresh("FULL")
    assert spark._jvm.System.getProperty(MARK) is None


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"PAR1" + b"\xff" * 64 + b"PAR1", b"\0" * 4096]
)
@pytest.mark.parametrize("name", ["*/manifest/*.json", "*/segments/*.parquet"])
def test_a_query_over_a_broken_index_reads_every_file(spark, lake, name, content, caplog):
    built(spark, lake)
    for path in Path(lake.base).glob(name):
        path.write_bytes(content)
    enable(spark, lake.base)
    try:
        assert spark.read.parquet(lake.data).where("price >= 25").count() == 5
    finally:
        disable(spark)
    assert "is not used" in caplog.text


def test_a_property_of_a_table_names_no_server(spark: SparkSession, tmp_path: Path) -> None:
    with listening() as listener:
        place = f"opensearch://127.0.0.1:{listener.port}"
        spark.range(3).write.parquet(str(tmp_path / "t"))
        spark.sql(
            f"CREATE TABLE hostile_t USING parquet LOCATION '{tmp_path / 't'}' "
            f"TBLPROPERTIES ('io.xskipper.parquet.mdlocation' = '{place}/x')"
        )
        try:
            with pytest.raises(IndexNotFound):
                skipping_index(spark, location=str(tmp_path)).on_table("hostile_t").refresh()
        finally:
            spark.sql("DROP TABLE hostile_t")
    assert listener.heard == []
