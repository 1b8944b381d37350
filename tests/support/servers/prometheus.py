"""Debian's Prometheus: promtool, and a server that scrapes what a test names."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from support.servers.ports import free_port, running_server

Raw = dict[str, Any]

PROGRAMS = Path(__file__).parents[3] / ".ci" / "prometheus"


@cache
def programs() -> Path:
    """The folder of its programs; the project's own script installs them."""
    found = subprocess.run([PROGRAMS], check=True, stdout=subprocess.PIPE, text=True)
    return Path(found.stdout.strip())


def promtool(*arguments: str | Path) -> tuple[int, str]:
    """The exit code of promtool, and what it prints."""
    command = [programs() / "promtool", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    port: int

    def ask(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Raw]:
        """The series that an expression has now."""
        found: list[Raw] = self.ask("query", query=expression)["result"]
        return found

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Raw]:
        """The series that an expression had, between two times in seconds since 1970."""
        times = {"start": str(start), "end": str(end), "step": str(step)}
        found: list[Raw] = self.ask("query_range", query=expression, **times)["result"]
        return found


@contextmanager
def running_prometheus(
    folder: Path, targets: Mapping[str, Sequence[int]], interval: str = "1s"
) -> Iterator[Prometheus]:
    """A server that asks some ports of this machine for their metrics.

    Args:
        folder: for its data and its log.
        targets: ports, by the value of the label `component`.
        interval: between two questions.
    """
    port = free_port()
    config = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [
            {
                "job_name": "snaploom",
                "honor_labels": True,
                "static_configs": [
                    {
                        "targets": [f"127.0.0.1:{each}" for each in ports],
                        "labels": {"component": component},
                    }
                    for component, ports in targets.items()
                ],
            }
        ],
    }
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [
        str(programs() / "prometheus"), f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with running_server(command, folder / "prometheus.log", lambda: _is_ready(port)):
        yield Prometheus(port)


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
            return True
    except (URLError, OSError):
        return False
