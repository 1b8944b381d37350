"""The server of sessions: who gets the JVM that it holds, with a child process of a few lines."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from support.documentation.commands import wait_until

from snaploom.jobs.sessionserver.client import ask_to_stop, server_state, taken
from snaploom.jobs.sessionserver.launch import Launch, bounds_of_process, to_line
from snaploom.jobs.sessionserver.messages import STATE, STOP, TAKE
from snaploom.jobs.sessionserver.place import own_socket
from snaploom.jobs.sessionserver.server import LONGEST_REQUEST, SessionServer
from snaploom.jobs.sessionserver.startup import start_server

HOLDER = """
import json, os, pathlib, sys
launch = json.loads(sys.stdin.readline())
while not pathlib.Path(launch["settings"]["may_start"]).exists(): pass
print(launch["settings"]["prints"].replace("PID", str(os.getpid())), flush=True)
sys.stdin.read()
"""
READY = '{"port": PID, "secret": "s"}'
"""The port of a JVM stands for the number of the process that holds it."""
Answer = dict[str, str | float]


@dataclass
class Connection:
    """Of a command."""

    end: socket.socket

    def ask(self, request: bytes) -> Answer:
        self.end.sendall(request)
        return self.answer()

    def answer(self) -> Answer:
        answer: Answer = json.loads(self.end.makefile().readline())
        return answer

    def take(self, launch: Launch) -> Answer:
        return self.ask(TAKE + b" " + to_line(launch))


class Served:
    """A server in a thread, and commands that come and go."""

    def __init__(self, folder: Path, idle_seconds: float = 600) -> None:
        self.folder = folder
        self.gate = folder / "may_start"
        self.gate.touch()
        self.path = folder / "socket"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.path))
        self.listener.listen()
        holder = (sys.executable, "-c", HOLDER)
        self.server = SessionServer(self.listener, self.path, idle_seconds, holder)
        self.thread = threading.Thread(target=self.server.serve, daemon=True)
        self.thread.start()

    def launch(self, number: str = "one", prints: str = READY) -> Launch:
        settings = {"may_start": str(self.gate), "prints": prints, "number": number}
        environment, bounds = dict(os.environ), bounds_of_process()
        return Launch(settings, False, environment, str(self.folder), 0o022, (), bounds)

    def command(self) -> Connection:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.settimeout(60)
        end.connect(str(self.path))
        return Connection(end)

    def state(self, request: bytes = STATE) -> Answer:
        command = self.command()
        answer = command.ask(request + b"\n")
        command.end.close()
        return answer

    def is_(self, state: str) -> Callable[[], bool]:
        return lambda: self.state()["state"] == state

    def prepared(self, launch: Launch) -> None:
        """A command came for the first time, and has ended."""
        first = self.command()
        assert first.take(launch) == {}
        first.end.close()
        wait_until(self.is_("ready"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty one, whose path is as short as that of a socket must be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    served = Served(folder)
    yield served
    if served.path.exists():
        served.gate.touch()
        served.state(STOP)
    served.thread.join(60)
    assert not served.thread.is_alive()


def test_second_command_gets_the_jvm_that_the_first_one_left_to_prepare(served: Served) -> None:
    served.prepared(served.launch())
    second = served.command()
    assert second.take(served.launch())["secret"] == "s"
    assert served.state()["state"] == "in use"
    second.end.close()


def test_jvm_serves_one_command_and_ends_with_it(served: Served) -> None:
    served.prepared(served.launch())
    second = served.command()
    pid = int(second.take(served.launch())["port"])
    assert psutil.pid_exists(pid)
    second.end.close()
    wait_until(served.is_("ready"))
    assert not psutil.pid_exists(pid)
    third = served.command()
    assert third.take(served.launch())["port"] not in (pid, None)
    third.end.close()


def test_two_commands_at_a_time_never_get_the_same_jvm(served: Served) -> None:
    served.prepared(served.launch())
    one, other = served.command(), served.command()
    assert "port" in one.take(served.launch())
    assert other.take(served.launch()) == {}
    one.end.close()
    other.end.close()


def test_command_that_would_start_another_jvm_gets_none(served: Served) -> None:
    served.prepared(served.launch("one"))
    other = served.command()
    assert other.take(served.launch("other")) == {}
    other.end.close()
    wait_until(served.is_("ready"))
    again = served.command()
    assert "port" in again.take(served.launch("other"))
    again.end.close()


def test_command_with_limits_of_its_own_gets_none(served: Served) -> None:
    launch = replace(served.launch(), bounds=("RLIMIT_NOFILE (1, 1)",))
    first = served.command()
    assert first.take(launch) == {}
    first.end.close()
    assert served.state()["state"] == "idle"  # none is prepared: it would have the server's


def test_command_waits_for_the_jvm_that_is_being_prepared(served: Served) -> None:
    served.gate.unlink()
    first = served.command()
    assert first.take(served.launch()) == {}
    first.end.close()
    wait_until(served.is_("preparing"))
    second = served.command()
    second.end.sendall(TAKE + b" " + to_line(served.launch()))
    third = served.command()
    assert third.take(served.launch()) == {}
    served.gate.touch()
    assert "port" in second.answer()
    second.end.close()
    third.end.close()


@pytest.mark.parametrize("prints", ['{"failure": "no Java"}', '{"port": 1}', "nonsense", "[]", ""])
def test_jvm_that_cannot_be_prepared_is_reported_and_nobody_waits(
    served: Served, prints: str
) -> None:
    launch = served.launch(prints=prints)
    served.gate.unlink()
    first = served.command()
    assert first.take(launch) == {}
    first.end.close()
    wait_until(served.is_("preparing"))
    second = served.command()
    second.end.sendall(TAKE + b" " + to_line(launch))
    served.gate.touch()
    assert second.answer() == {}
    assert served.state()["failure"] in ("no Java", "the process that holds it has ended")
    assert served.state()["state"] == "idle"
    second.end.close()


def test_jvm_that_dies_while_nobody_has_it_is_not_given(served: Served) -> None:
    served.prepared(served.launch())
    spare = served.server.spare
    assert spare is not None
    psutil.Process(spare.process.pid).kill()
    wait_until(served.is_("idle"))
    command = served.command()
    assert command.take(served.launch()) == {}
    command.end.close()


@pytest.mark.parametrize(
    "request_",
    [b"nonsense\n", b"take\n", b"take {}\n", b"take [1]\n", b"\n", b"x" * (LONGEST_REQUEST + 1)],
)
def test_server_outlives_what_is_no_request(served: Served, request_: bytes) -> None:
    command = served.command()
    try:
        command.end.sendall(request_)
        assert command.end.recv(1) == b""
    except ConnectionError:
        pass  # closed while it was still sent
    assert served.state()["state"] == "idle"


def test_stopped_server_leaves_a_command_its_jvm(served: Served) -> None:
    served.prepared(served.launch())
    second = served.command()
    pid = int(second.take(served.launch())["port"])
    assert served.state(STOP)["state"] == "in use"
    wait_until(lambda: not served.path.exists())
    assert psutil.pid_exists(pid)
    assert served.thread.is_alive()
    second.end.close()
    served.thread.join(60)
    assert not psutil.pid_exists(pid)


def test_stopped_server_ends_the_jvm_that_is_ready(served: Served) -> None:
    served.prepared(served.launch())
    spare = served.server.spare
    assert spare is not None
    served.state(STOP)
    served.thread.join(60)
    assert spare.process.poll() is not None


def test_idle_server_ends_by_itself(folder: Path) -> None:
    served = Served(folder, idle_seconds=0.01)
    served.thread.join(60)
    assert not served.thread.is_alive()
    assert not served.path.exists()


def test_server_leaves_the_socket_of_its_successor(served: Served) -> None:
    command = served.command()
    kept = served.path.with_name("kept")  # so that its inode is not taken again
    served.path.rename(kept)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as successor:
        successor.bind(str(served.path))
        command.ask(STOP + b"\n")
        command.end.close()
        served.thread.join(60)
        assert served.path.exists()
    served.path.unlink()


def test_process_of_another_user_is_not_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: os.getuid() + 1)  # the system names the real one
        command = served.command()
        try:
            command.end.sendall(STATE + b"\n")
            assert command.end.recv(1) == b""
        except ConnectionError:
            pass  # closed before that
    assert served.state()["state"] == "idle"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder of caches."""
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        yield


@pytest.mark.usefixtures("cache")
def test_folder_that_others_can_write_is_not_used() -> None:
    own_socket().parent.chmod(0o777)
    with pytest.raises(PermissionError, match="others can write"):
        own_socket()
    assert server_state() is None


@pytest.mark.usefixtures("cache")
def test_command_sends_nothing_to_the_server_of_another_user(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(own_socket()))
        listener.listen()
        with monkeypatch.context() as patch:
            patch.setattr("snaploom.jobs.sessionserver.client.is_own_peer", lambda _: False)
            assert taken(served.launch()) is None
        connection, _ = listener.accept()
        assert connection.recv(1) == b""


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\n", b"[]\n", b'{"port": "x"}\n', b'{"port": 1}\n', b"1\n"]
)
def test_answer_that_is_none_counts_as_no_jvm(served: Served, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(own_socket()))
        listener.listen()

        def respond() -> None:
            connection, _ = listener.accept()
            connection.recv(1 << 20)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=respond)
        thread.start()
        assert taken(served.launch()) is None
        thread.join(60)


@pytest.mark.usefixtures("cache")
def test_server_that_ends_at_once_was_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snaploom.jobs.sessionserver.startup.SERVER", "no.such.module")
    with pytest.raises(ChildProcessError, match="ended at once"):
        start_server(60)
    assert server_state() is None


@pytest.mark.usefixtures("cache")
def test_server_is_started_once() -> None:
    assert start_server(60)
    assert not start_server(60)
    assert ask_to_stop() is not None
    wait_until(lambda: server_state() is None)
