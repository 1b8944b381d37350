"""The Spark session of all tests of a process; it is started when a test first asks for it."""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession
from support.documentation.examples import DEADLINE, Shell
from support.servers.databases import driver_jars
from support.weaving.sparksession import compiled, make_session

from snaploom.cli.main import run_command
from snaploom.engine.unmatched import TimeAllowance

BETWEEN = 0.02
"""Seconds between two looks at whether the shell has ended."""
MOST_BYTES = 1 << 20
"""Of a request: arguments and the environment, which Linux bounds at about this."""
SECONDS_FOR_KEYS = 600.0
"""Of each look at rows without a match: pages show their keys, however busy the machine is."""

_PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as here:
    here.connect({address!r})
    asked = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    text = json.dumps(asked).encode()
    socket.send_fds(here, [len(text).to_bytes(4, "big")], [0, 1, 2])
    here.sendall(text)
    sys.exit(int(here.recv(16)))
"""


def _run_shell(
    spark: SparkSession, text: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run commands in `bash`, each `snaploom` of which works here."""
    with (
        tempfile.TemporaryDirectory() as place,
        socket.socket(socket.AF_UNIX) as listener,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        compiled(spark),
    ):
        program, address = Path(place) / "snaploom", f"{place}/asked"
        program.write_text(_PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o755)
        listener.bind(address)
        listener.listen()
        path = f"{place}{os.pathsep}{environment['PATH']}"
        process = subprocess.Popen(
            ["bash", "-c", text], cwd=folder, env={**environment, "PATH": path},
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True,
        )  # fmt: skip
        _serve(listener, process)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(text, process.returncode, out.read(), err.read())


def _serve(listener: socket.socket, process: subprocess.Popen[str]) -> None:
    """Answer commands until the shell ends, in this thread: they handle signals."""
    deadline = time.monotonic() + DEADLINE
    listener.settimeout(BETWEEN)
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            raise TimeoutError(f"{process.args!r} takes longer than {DEADLINE} s")
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            with connection:
                connection.setblocking(True)
                _answer(connection)


def _answer(connection: socket.socket) -> None:
    """Run one command as its process would, and send the exit code."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as stream:
        asked = json.loads(stream.read(min(int.from_bytes(length, "big"), MOST_BYTES)))
    code = _run(asked["arguments"], asked["folder"], asked["environment"], streams)
    connection.sendall(str(code).encode())


def _run(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
) -> int:
    with (
        open(streams[0], encoding="utf-8") as given,
        open(streams[1], "w", encoding="utf-8") as out,
        open(streams[2], "w", encoding="utf-8") as err,
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "stdin", given),
        mock.patch.object(TimeAllowance, "left", return_value=SECONDS_FOR_KEYS),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        return run_command(arguments)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process; starting it takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        # Behind Spark's own jars: before them, where `spark.driver.extraClassPath` puts its jars,
        # the archive of classes would not fit.
        patch.setenv("SPARK_DIST_CLASSPATH", f"{driver_jars()}/*")
        session = make_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_shell(spark: SparkSession) -> Shell:
    """A shell whose `snaploom` works in this process, with its Spark."""
    return functools.partial(_run_shell, spark)
