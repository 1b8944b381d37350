"""A lineage catalogue of others shows what a run published: from what, and column by column.

A real lineage catalogue: Data.Rentgen, with PostgreSQL and Kafka of its own.

Events come in by HTTP, with a key, go through Kafka into the database, and are read back by the
catalogue's own API.
"""

import base64
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.declared.shop import Shop
from support.servers.ports import free_ports
from support.servers.postgresserver import PASSWORD, USER, running_postgres

JARS = Path(__file__).parents[2] / ".ci" / "jars"
KAFKA_SECONDS = 120.0
"""It takes 4 seconds on its own; a machine full of other tests takes longer."""


@contextmanager
def running_kafka(folder: Path) -> Iterator[int]:
    """A broker whose log lies in `folder`, which makes any topic that it is asked for: its port."""
    port, control = free_ports(2)
    folder.mkdir()
    settings = folder / "server.properties"
    settings.write_text(_properties(folder / "log", port, control))
    done = subprocess.run([JARS, "kafka"], stdout=subprocess.PIPE, text=True, check=True)
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{done.stdout.strip()}/*"]
    name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    storage = ["kafka.tools.StorageTool", "format", "-t", name, "-c", str(settings)]
    subprocess.run([*java, *storage], check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
    try:
        _await_kafka(broker, port, folder / "broker.log")
        yield port
    finally:
        broker.kill()
        broker.wait()


def _properties(log: Path, port: int, control: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "controller.listener.names": "CONTROL",
        "inter.broker.listener.name": "CLIENTS",
        "listeners": f"CLIENTS://127.0.0.1:{port},CONTROL://127.0.0.1:{control}",
        "advertised.listeners": f"CLIENTS://127.0.0.1:{port}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROL:PLAINTEXT",
        "log.dirs": str(log),
        "num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _await_kafka(broker: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + KAFKA_SECONDS
    while time.monotonic() < deadline:
        if broker.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"Kafka is not ready: {log.read_text()[-2000:]}")


PYTHON = Path(__file__).parents[2] / ".ci" / "datarentgen"
READY_SECONDS = 120.0
"""It takes 10 seconds on its own; a machine full of other tests takes longer."""
SECRET = "a secret of this test, long enough to sign tokens with"
PARTS = ("server", "http2kafka", "consumer")


@dataclass(frozen=True)
class Catalogue:
    url: str
    """Of its API."""
    events: str
    """Where it takes events."""
    key: str
    """What events need."""
    token: str
    """What the API needs."""

    def get(self, path: str, **query: str) -> Any:
        place = f"{self.url}/v1/{path}?{urllib.parse.urlencode(query)}"
        return _ask(place, {"Authorization": f"Bearer {self.token}"})

    def dataset(self, name: str) -> str | None:
        """Id of a dataset; None where there is none of exactly this name."""
        found = self.get("datasets", search_query=name)["items"]
        return next((one["id"] for one in found if one["data"]["name"] == name), None)

    def upstream(self, dataset: str) -> Any:
        """What a dataset is made of, by operations, with its columns."""
        return self.get(
            "datasets/lineage",
            start_node_id=dataset,
            direction="UPSTREAM",
            depth="2",  # to what wrote it, and to what that read
            granularity="OPERATION",
            since="2000-01-01T00:00:00Z",
            include_column_lineage="true",
        )


@contextmanager
def running_catalogue(folder: Path) -> Iterator[Catalogue]:
    """A catalogue without any event; logs of its parts are in `folder`."""
    found = subprocess.run([PYTHON], check=True, stdout=subprocess.PIPE, text=True)
    python = found.stdout.strip()
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        broker = stack.enter_context(running_kafka(folder / "kafka"))
        environment = os.environ | _settings(postgres.port, broker)
        for step in (["migrations", "upgrade", "head"], ["scripts.create_partitions"]):
            command = [python, "-m", f"data_rentgen.db.{step[0]}", *step[1:]]
            subprocess.run(command, env=environment, check=True, capture_output=True)
        ports = dict(zip(PARTS, free_ports(len(PARTS)), strict=True))
        for part, port in ports.items():
            log = stack.enter_context((folder / f"{part}.log").open("wb"))
            command = [python, "-m", f"data_rentgen.{part}", "--host", "127.0.0.1"]
            process = subprocess.Popen(
                [*command, "--port", str(port)], env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        for part, port in ports.items():
            _await_ready(f"http://127.0.0.1:{port}/monitoring/ping", folder / f"{part}.log")
        yield _signed_in(*(f"http://127.0.0.1:{ports[part]}" for part in PARTS[:2]))


def _settings(postgres: int, broker: int) -> Mapping[str, str]:
    password = urllib.parse.quote(PASSWORD)
    settings = {
        "DATABASE__URL": f"postgresql+asyncpg://{USER}:{password}@127.0.0.1:{postgres}/postgres",
        "KAFKA__BOOTSTRAP_SERVERS": f'["127.0.0.1:{broker}"]',
        "CONSUMER__AUTO_OFFSET_RESET": "earliest",
        "AUTH__ACCESS_TOKEN__SECRET_KEY": SECRET,
        "AUTH__PERSONAL_TOKENS__SECRET_KEY": SECRET,
        "SERVER__SESSION__ENABLED": "false",
        "SERVER__STATIC_FILES__ENABLED": "false",
    }
    return {f"DATA_RENTGEN__{name}": value for name, value in settings.items()}


def _signed_in(server: str, events: str) -> Catalogue:
    form = urllib.parse.urlencode({"grant_type": "password", "username": "ada", "password": "-"})
    token = _ask(f"{server}/v1/auth/token", {}, form.encode())["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    made = _ask(f"{server}/v1/personal-tokens", headers, b'{"name": "snaploom"}')
    return Catalogue(server, f"{events}/v1/openlineage", made["content"], token)


def _ask(url: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
    request = urllib.request.Request(url, body, dict(headers))
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _await_ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the catalogue is not ready: {log.read_text()[-2000:]}")


pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHOWN_SECONDS = 60.0
"""Events are shown within a second after a run; a machine full of other tests takes longer."""


@pytest.fixture(scope="module")
def shown(spark: object, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, Any]:
    """What the catalogue shows of the output of a run."""
    folder = tmp_path_factory.mktemp("catalogue")
    shop = Shop(folder / "shop").with_data()
    with running_catalogue(folder) as catalogue, pytest.MonkeyPatch.context() as environment:
        environment.setenv("SNAPLOOM_LINEAGE_URL", catalogue.events)
        environment.setenv("SNAPLOOM_LINEAGE_API_KEY", catalogue.key)
        sent = shop.run()
        assert sent.code == 0, sent.err
        assert "lineage" not in sent.err
        return shop, lineage_of(catalogue, f"{shop.published}/data")


def lineage_of(catalogue: Catalogue, name: str) -> Any:
    """The lineage of a dataset, as soon as it has that of columns."""
    deadline = time.monotonic() + SHOWN_SECONDS
    while time.monotonic() < deadline:
        dataset = catalogue.dataset(name)
        found = catalogue.upstream(dataset) if dataset is not None else None
        if found is not None and found["relations"]["direct_column_lineage"]:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{name} is not shown")


def names(found: Any) -> dict[str, str]:
    return {key: one["name"] for key, one in found["nodes"]["datasets"].items()}


def test_output_is_made_of_its_sources(shown: tuple[Shop, Any]) -> None:
    shop, found = shown
    known = names(found)
    read = {known[one["from"]["id"]] for one in found["relations"]["inputs"]}
    assert read == {f"{shop.folder}/orders", f"{shop.folder}/customers"}
    written = {known[one["to"]["id"]] for one in found["relations"]["outputs"]}
    assert written == {f"{shop.published}/data"}


def test_columns_lead_to_columns_of_sources(shown: tuple[Shop, Any]) -> None:
    shop, found = shown
    known = names(found)
    columns = {
        (target, known[one["from"]["id"]], source["field"])
        for one in found["relations"]["direct_column_lineage"]
        for target, sources in one["fields"].items()
        for source in sources
    }
    assert ("customers.data.name", f"{shop.folder}/customers", "name") in columns
    assert ("data.amount", f"{shop.folder}/orders", "amount") in columns


def test_columns_of_joins_are_shown_apart(shown: tuple[Shop, Any]) -> None:
    _, found = shown
    joined = {
        (source["field"], *source["types"])
        for one in found["relations"]["indirect_column_lineage"]
        for source in one["fields"]
    }
    assert ("customer_id", "JOIN") in joined


def test_snapshot_is_a_finished_operation_of_its_job(shown: tuple[Shop, Any]) -> None:
    _, found = shown
    (operation,) = found["nodes"]["operations"].values()
    assert (operation["name"], operation["status"]) == ("wide.snapshot", "SUCCEEDED")
