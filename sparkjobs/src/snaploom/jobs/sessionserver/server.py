"""The server of sessions: one process, which waits for commands and holds one JVM at most.

It is started by `snaploom session start` with a socket that listens, and knows no Spark: a JVM is
held by a child process (`jobs.preparedjvm`), which ends it when its standard input is
closed. A command keeps its connection open as long as it lives. When the last one has ended, the
next JVM is prepared, for what the command before was started with.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from snaploom.jobs.sessionserver.launch import (
    Launch,
    bounds_of_process,
    from_line,
    to_line,
)
from snaploom.jobs.sessionserver.messages import (
    NOTHING,
    STATE,
    STOP,
    TAKE,
    Address,
    Failure,
    ServerState,
    State,
    line_of,
    message_in,
)
from snaploom.jobs.sessionserver.place import is_own_peer, locked
from snaploom.processend import end_process

HOLDER = (sys.executable, "-P", "-m", "snaploom.jobs.preparedjvm")
"""Command of the child process; modules in the folder of a command are not taken for Python's."""
LONGEST_REQUEST = 4 << 20
"""Bytes of a request; Linux gives a process 2 MiB of environment and arguments as a rule."""
_READ = 65_536
_END_SECONDS = 10.0


@dataclass
class PreparedJvm:
    """A child process with a JVM that is prepared, or being so."""

    key: str
    folder: str
    process: subprocess.Popen[bytes]
    printed: bytes = b""
    address: Address | None = None

    def end(self) -> None:
        """The child ends, and its JVM with it."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Command:
    """A connection, of a command or of somebody who asks."""

    connection: socket.socket
    received: bytes = b""
    wanted: Launch | None = None
    """What it would have a JVM for; None for somebody who only asks."""
    jvm: PreparedJvm | None = None
    """What it was given."""
    is_waiting: bool = False
    """For the JVM that is being prepared."""


@dataclass
class SessionServer:
    """What is held, and what comes in.

    Args:
        listener: a socket that listens.
        path: of the socket.
        idle_seconds: after how long without a command the server ends.
        holder: command of the child process.
    """

    listener: socket.socket
    path: Path
    idle_seconds: float
    holder: Sequence[str] = HOLDER
    commands: dict[int, Command] = field(default_factory=dict)
    spare: PreparedJvm | None = None
    failure: str = ""
    last_used: float = field(default_factory=time.monotonic)
    is_ending: bool = False
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __post_init__(self) -> None:
        self.inode = _inode(self.path)
        self.bounds = bounds_of_process()

    def end_by(self, signals: socket.socket) -> None:
        """End once a byte comes, which a signal writes: selecting goes on after a handler."""
        self.selector.register(signals, selectors.EVENT_READ, lambda: self._hear_signal(signals))

    def _hear_signal(self, signals: socket.socket) -> None:
        signals.recv(_READ)
        self.end()

    def serve(self) -> None:
        """Answer until it was idle for long, or somebody ends it."""
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        while not (self.is_ending and not self._users()):
            for key, _ in self.selector.select(self._seconds_left()):
                key.data()
            if not self._users() and self._seconds_left() == 0:
                self.end()
        self.end()

    def end(self) -> None:
        """Take no more commands; those that have a JVM go on."""
        if not self.is_ending:
            self.is_ending = True
            self.selector.unregister(self.listener)
            with locked(self.path):
                if _inode(self.path) == self.inode:  # another server may have its own there
                    self.path.unlink()
            self.listener.close()
        self._drop_spare()

    def _users(self) -> list[Command]:
        return [each for each in self.commands.values() if each.wanted is not None]

    def _seconds_left(self) -> float | None:
        if self._users() or self.is_ending:
            return None
        return max(0.0, self.last_used + self.idle_seconds - time.monotonic())

    def _accept(self) -> None:
        if self.is_ending:  # since this round of events began
            return
        with suppress(BlockingIOError, ConnectionError):
            connection, _ = self.listener.accept()
            if not is_own_peer(connection):
                connection.close()
                return
            connection.setblocking(False)
            command = Command(connection)
            self.commands[connection.fileno()] = command
            self.selector.register(connection, selectors.EVENT_READ, lambda: self._receive(command))

    def _receive(self, command: Command) -> None:
        try:
            more = command.connection.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        command.received += more
        if not more or len(command.received) > LONGEST_REQUEST:
            self._forget(command)
        elif command.received.endswith(b"\n"):
            request, command.received = command.received, b""
            self._take_up(command, request)

    def _take_up(self, command: Command, request: bytes) -> None:
        word, _, rest = request.rstrip(b"\n").partition(b" ")
        if word in (STATE, STOP):
            self._answer(command, line_of(self._state()))
            if word == STOP:
                self.end()
            return
        try:
            if word != TAKE:
                raise ValueError("no request")
            wanted = from_line(rest)
        except ValueError:
            self._forget(command)
            return
        if wanted.bounds != self.bounds:  # a child of this process would have its own
            self._answer(command, NOTHING)
            return
        command.wanted = wanted
        self._give(command, wanted)

    def _give(self, command: Command, wanted: Launch) -> None:
        """Give the JVM that is there, or is to be; nothing where it is another one."""
        self.last_used = time.monotonic()
        spare = self.spare
        is_waited_for = any(each.is_waiting for each in self.commands.values())
        if spare is None or spare.key != wanted.key or is_waited_for:
            if not is_waited_for:
                self._drop_spare()  # the command starts its own one, and needs the memory
            self._answer(command, NOTHING)
        elif spare.address is None:
            command.is_waiting = True
        else:
            self._hand_over(command, spare)

    def _hand_over(self, command: Command, spare: PreparedJvm) -> None:
        assert spare.address is not None
        self.spare, command.is_waiting = None, False
        command.jvm = spare
        self._answer(command, line_of(spare.address))

    def _forget(self, command: Command) -> None:
        """A command has ended; its JVM ends with it, and the next one may be prepared."""
        self.selector.unregister(command.connection)
        self.commands.pop(command.connection.fileno(), None)
        command.connection.close()
        if command.jvm is not None:
            command.jvm.end()
        if command.wanted is not None:
            self.last_used = time.monotonic()
            if not self._users() and not self.is_ending:
                self._prepare(command.wanted)

    def _prepare(self, launch: Launch) -> None:
        if self.spare is not None and self.spare.key == launch.key:
            return
        self._drop_spare()
        try:
            process = subprocess.Popen(
                self.holder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=launch.folder,
                env=dict(launch.environment),
                start_new_session=True,
            )
        except OSError as error:
            self.failure = str(error)
            return
        self.spare = spare = PreparedJvm(launch.key, launch.folder, process)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has ended, which its output shows
            process.stdin.write(to_line(launch))
            process.stdin.flush()
        os.set_blocking(process.stdout.fileno(), False)
        self.selector.register(process.stdout, selectors.EVENT_READ, lambda: self._hear(spare))

    def _hear(self, spare: PreparedJvm) -> None:
        """The child has printed where its JVM is, or has ended without."""
        assert spare.process.stdout is not None
        if spare.process.stdout.closed:  # since this round of events began
            return
        more = spare.process.stdout.read(_READ) or b""
        spare.printed += more
        if more and not spare.printed.endswith(b"\n"):
            return
        if spare is not self.spare:  # a command has it, or had it
            if not more:
                self._close_output(spare)
            return
        try:
            spare.address = message_in(spare.printed, Address)
        except ValueError:
            self.failure = _failure_in(spare.printed)
            self._drop_spare()
            return
        spare.printed, self.failure = b"", ""
        waiting = next((each for each in self.commands.values() if each.is_waiting), None)
        if waiting is not None:
            self._hand_over(waiting, spare)

    def _drop_spare(self) -> None:
        """End the JVM that nobody has, and answer who waits for it."""
        spare, self.spare = self.spare, None
        if spare is None:
            return
        self._close_output(spare)
        spare.end()
        for each in list(self.commands.values()):
            if each.is_waiting:
                each.is_waiting = False
                self._answer(each, NOTHING)

    def _close_output(self, spare: PreparedJvm) -> None:
        assert spare.process.stdout is not None
        self.selector.unregister(spare.process.stdout)
        spare.process.stdout.close()

    def _state(self) -> ServerState:
        spare = self.spare
        if self.is_ending:
            state = State.ENDING
        elif spare is not None:
            state = State.PREPARING if spare.address is None else State.READY
        else:
            is_used = any(each.jvm for each in self.commands.values())
            state = State.IN_USE if is_used else State.IDLE
        folder = "" if spare is None else spare.folder
        return ServerState(state, folder, self.idle_seconds / 60, self.failure)

    def _answer(self, command: Command, line: bytes) -> None:
        with suppress(OSError):  # it has ended, which its connection shows
            command.connection.sendall(line)


def _failure_in(line: bytes) -> str:
    """Why a child process has no JVM, as far as it could state it."""
    with suppress(ValueError):
        return message_in(line, Failure).failure
    return "the process that holds it has ended"


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on a socket that was inherited; the exit code."""
    parser = argparse.ArgumentParser(description="Keep one JVM of Spark ready.")
    parser.add_argument("descriptor", type=int, help="of a socket that listens")
    parser.add_argument("idle_seconds", type=float, help="without a command, after which it ends")
    asked = parser.parse_args(arguments)
    readable, writable = socket.socketpair()
    writable.setblocking(False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writable.fileno())
    with socket.socket(fileno=asked.descriptor) as listener:
        path = Path(listener.getsockname())
        server = SessionServer(listener, path, asked.idle_seconds)
        server.end_by(readable)
        server.serve()
    return 0


if __name__ == "__main__":
    end_process(main())
