"""A real OpenSearch of our own: started once, on a free port, gone when its stdin closes.

Its jars come from Maven through the ordinary client, once, into a cache outside the work tree.
"""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.ports import free_port, running_server

COMPONENT = Path(__file__).parents[1] / "components" / "opensearch"
JARS = Path(__file__).parents[3] / ".ci" / "jars"


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
    with running_server(command, folder / "server.log", _is_ready(port)):
        yield port


def _is_ready(port: int) -> Callable[[], bool]:
    def is_ready() -> bool:
        try:
            health = f"http://127.0.0.1:{port}/_cluster/health"
            with urllib.request.urlopen(health, timeout=5) as answer:
                return json.load(answer)["status"] in ("green", "yellow")
        except (urllib.error.URLError, OSError):
            return False

    return is_ready
