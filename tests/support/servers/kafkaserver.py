"""A real Kafka of our own, one broker, on free ports, with its log in a folder of its own."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.ports import free_ports

JARS = Path(__file__).parents[3] / ".ci" / "jars"
READY_SECONDS = 120.0
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
        _await_ready(broker, port, folder / "broker.log")
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


def _await_ready(broker: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
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
