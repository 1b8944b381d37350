"""A real lineage catalogue: Data.Rentgen, with PostgreSQL and Kafka of its own.

Events come in by HTTP, with a key, go through Kafka into the database, and are read back by the
catalogue's own API.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.servers.kafkaserver import running_kafka
from support.servers.ports import free_ports
from support.servers.postgresserver import PASSWORD, USER, running_postgres

PYTHON = Path(__file__).parents[3] / ".ci" / "datarentgen"
READY_SECONDS = 120.0
"""It takes 10 seconds on its own; a machine full of other tests takes longer."""
SECRET = "a secret of this test, long enough to sign tokens with"
PARTS = ("server", "http2kafka", "consumer")


@dataclass(frozen=True)
class Catalogue:
    """A running catalogue."""

    url: str
    """Of its API."""
    events: str
    """Where it takes events."""
    key: str
    """What events need."""
    token: str
    """What the API needs."""

    def get(self, path: str, **query: str) -> Any:
        """What the API answers."""
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
