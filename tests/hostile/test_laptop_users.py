"""Another user of a laptop, who reaches its ports and its temporary files, reads no row."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from snaploom.localfiles import private_folder

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SESSION = """
import json, sys
from snaploom.run.session.spark import build_session
from snaploom.models.run import RunSettings

spark = build_session("users", RunSettings())
frame = spark.range(8).selectExpr("concat('cached-row-', id) AS text").repartition(2).persist()
rows = frame.count()
kept = frame.rdd.map(lambda row: row.text).persist()
kept.count()
print(json.dumps({
    "application": spark.sparkContext.applicationId,
    "block": f"rdd_{kept.id()}_0",
    "rows": rows,
    "settings": dict(spark.sparkContext.getConf().getAll()),
    "java": spark._jvm.java.lang.ProcessHandle.current().pid(),
}), flush=True)
sys.stdin.readline()
"""
OPEN_BLOCKS, RPC_REQUEST, FETCH_CHUNK = 0, 3, 0
RPC_RESPONSE, CHUNK = 4, 1


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """What a session of the user has, while it is at work."""
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path_factory.mktemp("tmp")),
        "SPARK_LOCAL_DIRS": str(tmp_path_factory.mktemp("local")),
    }
    work = subprocess.Popen(
        [sys.executable, "-c", SESSION],
        env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert work.stdout is not None
    found = json.loads(work.stdout.readline())
    yield {**found, "temporary": environment["TMPDIR"], "local": environment["SPARK_LOCAL_DIRS"]}
    work.communicate("\n", timeout=60)


class OtherUser:
    """Speaks to Spark's service for blocks as executors do, and knows no secret."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=5)

    def ask(self, kind: int, content: bytes) -> tuple[int, bytes]:
        """The kind and content of an answer; empty where the connection is closed."""
        self._socket.sendall(struct.pack(">qb", 9 + len(content), kind) + content)
        head = self._read(9)
        if not head:
            return -1, b""
        length, answered = struct.unpack(">qb", head)
        return answered, self._read(length - 9)

    def block(self, application: str, name: str) -> bytes:
        """A block as it is kept; empty where it is refused."""
        texts = [application.encode(), b"driver"]
        body = bytes([OPEN_BLOCKS]) + b"".join(map(counted, texts))
        body += struct.pack(">i", 1) + counted(name.encode())
        kind, answer = self.ask(RPC_REQUEST, struct.pack(">qi", 1, len(body)) + body)
        if kind != RPC_RESPONSE:
            return b""
        stream = answer[8 + 4 + 1 :][:8]  # behind the request, the length and the kind
        kind, answer = self.ask(FETCH_CHUNK, stream + struct.pack(">i", 0))
        return answer if kind == CHUNK else b""

    def _read(self, count: int) -> bytes:
        found = b""
        with suppress(OSError):  # a port of something else may wait for more
            while len(found) < count and (piece := self._socket.recv(count - len(found))):
                found += piece
        return found if len(found) == count else b""


def counted(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def test_cached_rows_are_shown_to_nobody_without_the_secret(session: dict[str, object]) -> None:
    assert session["rows"] == 8
    listening = [
        each.laddr
        for each in psutil.Process(int(str(session["java"]))).net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 2
    for address in listening:
        other = OtherUser("127.0.0.1", address.port)
        assert other.block(str(session["application"]), str(session["block"])) == b""


def test_secret_is_in_no_setting_and_no_argument(session: dict[str, object]) -> None:
    settings = dict(session["settings"])  # type: ignore[call-overload]
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.ui.enabled"] == "false"
    arguments = " ".join(psutil.Process(int(str(session["java"]))).cmdline())
    assert "secret" not in f"{[*settings]} {arguments}".lower()


def test_temporary_files_are_where_nobody_else_can_enter(session: dict[str, object]) -> None:
    (folder,) = Path(str(session["temporary"])).iterdir()
    (local,) = Path(str(session["local"])).iterdir()
    assert [each.stat().st_mode & 0o777 for each in (folder, local)] == [0o700, 0o700]
    assert [*local.glob("blockmgr-*")]
    process = psutil.Process(int(str(session["java"])))
    shared = Path("/tmp")
    opened = [Path(each.path) for each in process.open_files() if shared in Path(each.path).parents]
    assert all({folder, local} & {*each.parents} for each in opened), opened


def test_folder_of_that_name_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    taken = private_folder()
    assert private_folder() == taken
    for mode in (0o755, 0o770, 0o701):
        taken.chmod(mode)
        other = private_folder()
        assert other != taken
        assert other.stat().st_mode & 0o777 == 0o700
    taken.rmdir()
    taken.symlink_to(other)
    assert private_folder() not in (taken, other)
