"""Publication in real catalogs: whatever is lost, refused, late or done by others meanwhile."""

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.servers.guardedproxy import Loss, first, lossy
from support.servers.postgresserver import PASSWORD, Postgres
from support.servers.s3servers import S3Server
from support.servers.storefixtures import running_metastore
from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees, bury, now
from support.storage.tablefolders import SCHEMA
from support.weaving.oldspark import (
    catalog_settings,
    glue_settings,
    hive_settings,
    jdbc_catalog,
)

from snaploom.errors import HistoryIncompatible, PublicationError, SnaploomError
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.entries import FolderSettings
from snaploom.output.folder import Folder, prepare_folder
from snaploom.output.gc import sweep
from snaploom.output.icebergtable import CatalogFailed
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished, Published, WriteResult, publish
from snaploom.output.replacement import restate
from snaploom.output.tablemove import move_table
from snaploom.sources.tables.iceberg import IcebergLibrary
from snaploom.spark.jvm import jvm_of

HOUR = 3600 * 1_000_000_000
Cut = Callable[[], str | None]
"""Asked at each message of a client: `answer` (it is passed on, and the connection breaks before
the answer), another text (it breaks at once), or None."""


@contextmanager
def cut_connections(behind: int, cut: Cut) -> Iterator[int]:
    """The port of a proxy before a port of this machine."""
    server = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                opened.append(client)
                threading.Thread(target=_serve, args=(client, behind, cut), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()
        for client in opened:
            _close(client)


def _serve(client: socket.socket, behind: int, cut: Cut) -> None:
    with suppress(OSError):
        target = socket.create_connection(("127.0.0.1", behind))
        threading.Thread(target=_answers, args=(target, client), daemon=True).start()
        while message := client.recv(1 << 20):
            what = cut()
            if what == "answer":
                client.shutdown(socket.SHUT_RD)
                _silence(client)
                target.sendall(message)
                # The server does what it was asked for before it sees the end.
                target.shutdown(socket.SHUT_WR)
                return
            if what is not None:
                _close(target)
                break
            target.sendall(message)
    _close(client)


def _answers(target: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while answer := target.recv(1 << 20):
            client.sendall(answer)
    _close(target)
    _close(client)


def _silence(client: socket.socket) -> None:
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@dataclass
class Lake:
    """A catalog, the table of one output in it, and what is between them."""

    spark: SparkSession
    catalog: str
    place: Path
    behind: Callable[[Any], Any]
    """Puts a fault between the output and the catalog, as a context."""
    namespace: str = field(default_factory=lambda: f"lake_{secrets.token_hex(4)}")

    @property
    def name(self) -> str:
        return f"{self.catalog}.{self.namespace}.wide"

    def settings(self, table: str | None) -> FolderSettings:
        """Settings of the output, whose table is in its folder where there is no name."""
        formats = {"data_format": "ICEBERG", "data_compression": "ZSTD"}
        return SETTINGS.model_copy(update={**formats, "table": table})

    def library(self, alias: str = "") -> IcebergLibrary:
        """A client of its own, which may know the catalog by an alias."""
        library = IcebergLibrary(self.spark)
        if alias:
            library._catalogs[self.catalog] = library._open(alias)
        return library

    def folder(self, alias: str = "", *, is_moved: bool = True) -> Folder:
        """The output's folder, with a client of its own."""
        settings, library = self.settings(self.name if is_moved else None), self.library(alias)
        store = open_store(str(self.place), create=True)
        return prepare_folder(store, settings, IDENTITY, a_run(start=now()), library=library)

    def move(self, alias: str = "") -> None:
        """Move the table from the folder to the catalog."""
        store, run, library = (
            open_store(str(self.place), create=False),
            a_run(start=now()),
            self.library(alias),
        )
        move_table(store, self.settings(self.name), IDENTITY, run, library)

    def rows(self) -> list[tuple[int, int]]:
        self.spark.catalog.refreshTable(self.name)
        found = self.spark.table(self.name).select("day", "a").collect()
        return sorted((row.day, row.a) for row in found)


@pytest.fixture(params=["rest", "jdbc", "hive", "glue"])
def lake(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, rest_catalog: S3Server,
    postgres: Postgres, metastore: int, glue: S3Server,
) -> Lake:  # fmt: skip
    @contextmanager
    def by_rest(loss: Loss) -> Iterator[None]:
        with lossy(rest_catalog, loss) as server:
            # Retries wait for seconds each.
            settings = {"uri": server.endpoint, "rest.client.max-retries": "1"}
            yield from redirected(spark, catalog_settings("rest", **settings))

    @contextmanager
    def by_jdbc(cut: Cut) -> Iterator[None]:
        with cut_connections(postgres.port, cut) as port:
            yield from redirected(spark, catalog_settings("jdbc", **jdbc_catalog(port, PASSWORD)))

    @contextmanager
    def by_hive(cut: Cut) -> Iterator[None]:
        with cut_connections(metastore, cut) as port:
            yield from redirected(spark, hive_settings("hive", port))

    @contextmanager
    def by_glue(loss: Loss) -> Iterator[None]:
        with lossy(glue, loss) as server:
            yield from redirected(spark, glue_settings(server.endpoint))

    behind = {"rest": by_rest, "jdbc": by_jdbc, "hive": by_hive, "glue": by_glue}
    return Lake(spark, request.param, tmp_path / "wide", behind[request.param])


def redirected(spark: SparkSession, changed: dict[str, str]) -> Iterator[None]:
    """Other settings of a catalog for clients that are opened meanwhile."""
    before = {key: spark.conf.get(key, None) for key in changed}
    for key, value in changed.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def writer(folder: Folder, *values: int | list[int]) -> Callable[[str], WriteResult]:
    def write(uri: str) -> WriteResult:
        path = Path(uri.removeprefix("file://"))
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": pa.array(values)}), path / "part.parquet")
        return WriteResult(rows=len(values), schema=SCHEMA)

    return write


def published(folder: Folder, day: int, *values: int) -> Published[Any] | AlreadyPublished:
    run = a_run(start=now())
    return publish(folder, run, a_target(day), writer(folder, *values), agrees)


def all_lost_from(number: int, what: str) -> Callable[..., Any]:
    """Lose every request, or answer, from one on."""
    seen = count(1)

    def lost(*_: object) -> str | None:
        return what if next(seen) >= number else None

    return lost


@pytest.mark.parametrize("what", ["answer", "500"], ids=["answers", "requests"])
def test_run_cut_off_at_any_request_publishes_whole_or_not_at_all(lake: Lake, what: str) -> None:
    published(lake.folder(), 0, 1, 2)
    outcomes = set()
    for number in count(1):
        before = lake.rows()
        with lake.behind(all_lost_from(number, what)):
            try:
                ended: object = published(lake.folder(), number, 1, 2)
            except SnaploomError as error:
                ended = error
        rows = lake.rows()
        assert rows in (before, sorted([*before, (number, 1), (number, 2)]))
        is_there = rows != before
        again = published(lake.folder(), number, 1, 2)
        assert isinstance(again, AlreadyPublished if is_there else Published)
        assert lake.rows() == sorted([*before, (number, 1), (number, 2)])
        outcomes.add((is_there, type(ended).__name__))
        if isinstance(ended, Published):
            break
    assert number > 4
    assert {is_there for is_there, _ in outcomes} == {True, False}


@pytest.mark.parametrize(
    ("lake", "commit"), [("rest", "/tables/wide"), ("glue", "UpdateTable")], indirect=["lake"]
)
@pytest.mark.parametrize("what", ["409", "503", "answer"])
def test_commit_that_is_refused_or_not_answered_once_publishes_once(
    lake: Lake, commit: str, what: str
) -> None:
    lake.folder()
    with lake.behind(first(1, "POST", commit, what)), suppress(CommitOutcomeUnknown):
        published(lake.folder(), 0, 1, 2)
    published(lake.folder(), 0, 1, 2)
    assert lake.rows() == [(0, 1), (0, 2)]


@pytest.mark.parametrize("lake", ["glue"], indirect=True)
def test_refusal_of_a_repeated_commit_is_no_proof_where_nothing_else_answers(lake: Lake) -> None:
    lake.folder()
    cut, is_sent = first(1, "POST", "UpdateTable", "answer"), threading.Event()

    def lost(method: str, path: str) -> str | None:
        if "UpdateTable" in path:
            is_sent.set()
        return "500" if is_sent.is_set() and "GetTable" in path else cut(method, path)

    with lake.behind(lost), pytest.raises(CommitOutcomeUnknown, match="may have the commit"):
        published(lake.folder(), 0, 1, 2)
    assert lake.rows() == [(0, 1), (0, 2)]
    assert isinstance(published(lake.folder(), 0, 1, 2), AlreadyPublished)


@pytest.mark.parametrize("lake", ["glue"], indirect=True)
def test_name_that_glue_does_not_take_is_refused_with_its_rule(lake: Lake) -> None:
    table = IcebergLibrary(lake.spark).of_catalog("glue.Shop.wide")
    with pytest.raises(CatalogFailed) as refused:
        table.create(f"file://{lake.place}/", SCHEMA, "a", {})
    assert "lowercase letters" in str(refused.value.found)


@pytest.mark.parametrize("days", [(0, 0), (0, 1)], ids=["same", "others"])
def test_two_writers_at_once_publish_each_snapshot_once(lake: Lake, days: tuple[int, int]) -> None:
    folders = [lake.folder(), lake.folder("hive2" if lake.catalog == "hive" else "")]
    meet = threading.Barrier(2)

    def work(index: int) -> Published[Any] | AlreadyPublished:
        folder = folders[index]

        def write(uri: str) -> WriteResult:
            result = writer(folder, 1, 2)(uri)
            meet.wait(60)
            return result

        return publish(folder, a_run(start=now()), a_target(days[index]), write, agrees)

    with ThreadPoolExecutor(2) as pool:
        ended = [each.result(120) for each in [pool.submit(work, index) for index in (0, 1)]]
    winners = sum(isinstance(one, Published) for one in ended)
    assert winners == len(set(days))
    assert lake.rows() == sorted((day, value) for day in set(days) for value in (1, 2))


@pytest.mark.parametrize("what", ["answer", "500"], ids=["answers", "requests"])
def test_move_cut_off_at_any_request_is_ended_by_the_next(lake: Lake, what: str) -> None:
    for number in count(1):
        each = replace(lake, place=lake.place / str(number), namespace=f"{lake.namespace}_{number}")
        published(each.folder(is_moved=False), 0, 1, 2)
        is_ended = False
        with each.behind(all_lost_from(number, what)), suppress(SnaploomError):
            each.move()
            is_ended = True
        each.move()
        published(each.folder(), 1, 3)
        assert each.rows() == [(0, 1), (0, 2), (1, 3)]
        if is_ended:
            break
    assert number > 3


def test_moved_table_has_its_tags_and_two_moves_at_once_are_one(lake: Lake) -> None:
    late = lake.folder(is_moved=False)
    published(late, 0, 1, 2)
    table = lake.library().at(f"file://{lake.place}/iceberg")
    table.manageSnapshots().createTag("audit", table.currentSnapshot().snapshotId()).commit()
    published(late, 1, 3)
    with ThreadPoolExecutor(2) as pool:
        aliases = ["", "hive2" if lake.catalog == "hive" else ""]
        list(pool.map(lake.move, aliases))
    with pytest.raises(PublicationError, match="has moved to a catalog"):
        published(late, 2, 4)
    published(lake.folder(), 2, 5)
    assert lake.rows() == [(0, 1), (0, 2), (1, 3), (2, 5)]
    tagged = lake.spark.sql(f"SELECT a FROM {lake.name} VERSION AS OF 'audit'")
    assert sorted(row.a for row in tagged.collect()) == [1, 2]


@pytest.mark.parametrize("lake", ["hive"], indirect=True)
@pytest.mark.parametrize(
    ("before", "fault", "found"),
    [
        ([], "claims that the table is there, and has none", "Table was created concurrently"),
        ([(0, 1)], "does not serve the table", "LockException: Timed out after"),
    ],
    ids=["creation", "commit"],
)
def test_lock_that_another_keeps_is_an_error_and_nothing_is_published(
    lake: Lake, metastore: int, before: list[tuple[int, int]], fault: str, found: str
) -> None:
    for day, value in before:
        published(lake.folder(), day, value)
    for _ in redirected(lake.spark, {"iceberg.hive.lock-timeout-ms": "10"}):
        with locked(lake, metastore), pytest.raises(CatalogFailed, match=fault) as refused:
            published(lake.folder(), 1, 2)
    assert found in str(refused.value.found)
    assert len(list((lake.place / "data").rglob("*.parquet"))) == len(before)
    published(lake.folder(), 1, 2)
    assert lake.rows() == [*before, (1, 2)]


@pytest.mark.parametrize("lake", ["hive"], indirect=True)
def test_metastore_that_keeps_types_of_columns_is_refused_with_its_setting(lake, tmp_path):
    def lists(uri: str) -> WriteResult:
        array = '{"type":"array","elementType":"long","containsNull":true}'
        return replace(writer(folder, [1])(uri), schema=SCHEMA.replace('"long"', array))

    with running_metastore(tmp_path, keeps_types="true") as port:
        for _ in redirected(lake.spark, hive_settings("hive", port)):
            folder = lake.folder()
            with pytest.raises(HistoryIncompatible, match=r"its hive\.metastore\.disallow\."):
                publish(folder, a_run(start=now()), a_target(0), lists, agrees)
            published(folder, 0, 1)


@contextmanager
def locked(lake: Lake, port: int) -> Iterator[None]:
    """Hold the metastore's lock of the table, as another writer does."""
    jvm = jvm_of(lake.spark)
    hive = jvm.org.apache.hadoop.hive
    conf = hive.conf.HiveConf()
    conf.set("hive.metastore.uris", f"thrift://127.0.0.1:{port}")
    client = hive.metastore.HiveMetaStoreClient(conf)
    api = hive.metastore.api
    table = api.LockComponent(api.LockType.EXCLUSIVE, api.LockLevel.TABLE, lake.namespace)
    table.setTablename("wide")
    parts = jvm.java.util.ArrayList()
    parts.add(table)
    number = client.lock(api.LockRequest(parts, "another", "elsewhere")).getLockid()
    try:
        yield
    finally:
        client.unlock(number)
        client.close()


class SeenTooEarly:
    """A catalog to which another client adds the namespace after it was asked for it."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def namespaceExists(self, namespace: Any) -> bool:  # noqa: N802 - as Java has it
        self._catalog.createNamespace(namespace)
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def test_namespace_that_another_run_makes_meanwhile_is_used(lake: Lake) -> None:
    table = IcebergLibrary(lake.spark).of_catalog(lake.name)
    late = replace(table, catalog=SeenTooEarly(table.catalog))
    late.create(f"file://{lake.place}/", SCHEMA, "a", {"owner": "us"})
    found = table.read()
    assert found.properties["owner"] == "us"


def test_compaction_and_expiry_by_others_harm_neither_table_nor_folder(lake: Lake) -> None:
    folder = lake.folder()
    for day in (0, 1):
        published(folder, day, 1, 2)
    system, table = f"{lake.catalog}.system", f"'{lake.namespace}.wide'"
    done = lake.spark.sql(
        f"CALL {system}.rewrite_data_files(table => {table}, options => map('rewrite-all', 'true'))"
    ).collect()
    assert done[0].rewritten_data_files_count == 2
    with pytest.raises(Exception, match="GC is disabled"):
        lake.spark.sql(f"CALL {system}.expire_snapshots(table => {table})").collect()
    restate(folder, a_run(start=now()), a_target(0), writer(folder, 7), agrees, reason="wrong")
    bury(folder, 1)
    published(folder, 2, 3)
    assert lake.rows() == [(0, 7), (2, 3)]
    swept = sweep(folder, a_run(start=now()), EpochNanos(now() + 2 * HOUR))
    assert (swept.snapshots, lake.rows()) == (2, [(0, 7), (2, 3)])
    live = {str(lake.place / path) for path in folder.log.read().live_files}
    assert {str(path) for path in (lake.place / "data").rglob("*.parquet")} == live


@pytest.mark.parametrize("lake", ["jdbc"], indirect=True)
def test_password_comes_from_the_environment_and_is_shown_nowhere(lake, postgres, monkeypatch):
    library = IcebergLibrary(lake.spark)
    url = jdbc_catalog(postgres.port, "env:LAKE_PASSWORD")
    for _ in redirected(lake.spark, catalog_settings("jdbc", **url)):
        with pytest.raises(PublicationError, match="names a variable") as refused:
            library.of_catalog("jdbc.shop.wide")
        assert refused.value.found == "env:LAKE_PASSWORD"
        monkeypatch.setenv("LAKE_PASSWORD", f"not {PASSWORD}")
        with pytest.raises(SnaploomError) as wrong:
            library.of_catalog("jdbc.shop.wide").read()
        assert PASSWORD not in str(wrong.value)
        monkeypatch.setenv("LAKE_PASSWORD", PASSWORD)
        assert IcebergLibrary(lake.spark).of_catalog("jdbc.shop.none").read() is None


@pytest.mark.parametrize("lake", ["rest"], indirect=True)
def test_catalog_without_settings_is_refused_with_what_it_needs(lake: Lake) -> None:
    with pytest.raises(PublicationError, match="no catalog of Iceberg with the name pond") as error:
        IcebergLibrary(lake.spark).of_catalog("pond.shop.wide")
    assert "spark.sql.catalog.pond.type" in str(error.value.expected)
