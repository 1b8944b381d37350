"""A real OpenSearch of our own: started once, on a free port, gone when its stdin closes.

Its jars come from Maven through the ordinary client, once, into a cache outside the work tree.
"""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.ports import free_port

COMPONENT = Path(__file__).parents[1] / "components" / "opensearch"
JARS = Path(__file__).parents[3] / ".ci" / "jars"
READY_SECONDS = 120.0
"""It takes 5 seconds on its own; a machine full of other tests takes longer."""


def opensearch_jars() -> Path:
    """Folder of the jars, which are those of SHA256SUMS; fetched when absent."""
    done = subprocess.run([JARS, "opensearch"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


@contextmanager
def running_opensearch(folder: Path) -> Iterator[int]:
    """A server whose data lie in `folder`; yields its port."""
    port = free_port()
    command = ["java", "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-cp"]
    command += [f"{opensearch_jars()}/*", str(COMPONENT / "Server.java"), str(folder), str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        _await_ready(server, port, folder / "server.log")
        yield port
    finally:
        if server.stdin is not None:
            server.stdin.close()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _await_ready(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"OpenSearch ended at once: {log.read_text()[-2000:]}")
        try:
            health = f"http://127.0.0.1:{port}/_cluster/health"
            with urllib.request.urlopen(health, timeout=5) as answer:
                if json.load(answer)["status"] in ("green", "yellow"):
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"OpenSearch is not ready: {log.read_text()[-2000:]}")
