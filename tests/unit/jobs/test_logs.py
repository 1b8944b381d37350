"""Nothing but a run's own lines reaches the console, whatever py4j logs."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR, Py4JNetworkError

import snaploom
from snaploom.run.joblog import silence_py4j


class ResetConnection:
    """A connection whose other end has died while it was answering."""

    def send_command(self, command: str) -> str:
        raise Py4JNetworkError("Error while sending or receiving", ConnectionResetError())

    def close(self, reset: bool) -> None:
        pass


def send_to_a_dead_jvm() -> str:
    client = GatewayClient()
    client.deque.append(ResetConnection())
    return client.send_command("c\n", retry=False)


@pytest.fixture
def untouched_loggers():
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    root.filters.clear()
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


def test_py4j_logs_a_lost_jvm_as_a_traceback(untouched_loggers, caplog) -> None:
    assert send_to_a_dead_jvm() == ERROR
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_lost_jvm_logs_nothing_when_py4j_is_silenced(untouched_loggers, caplog) -> None:
    silence_py4j()
    assert send_to_a_dead_jvm() == ERROR
    assert caplog.records == []


def test_other_warnings_on_the_root_logger_still_pass(untouched_loggers, caplog) -> None:
    silence_py4j()
    logging.getLogger().warning("the disk is nearly full")
    assert caplog.messages == ["the disk is nearly full"]


def test_every_module_logs_in_one_of_the_areas() -> None:
    package = Path(snaploom.__file__).parent
    loggers = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if "getLogger(__name__)" in path.read_text("utf-8")
    }
    assert loggers
    page = (Path(__file__).parents[3] / "docs/how-to/watch-the-operator.md").read_text("utf-8")
    areas = tuple(re.findall(r"^\| `(snaploom\.\w+)` \|", page, re.MULTILINE))
    assert [name for name in loggers if not name.startswith(areas)] == []
