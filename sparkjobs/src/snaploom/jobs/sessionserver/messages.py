"""What commands, the server of sessions and its child process send each other: lines of JSON.

A request is a word, and for `TAKE` a launch behind it. An answer without a JVM is an empty object.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import TypeAdapter

TAKE, STATE, STOP = b"take", b"state", b"stop"
"""First words of requests."""
NOTHING = b"{}\n"
"""The answer without a JVM."""


@dataclass(frozen=True)
class Address:
    """Where a JVM is reached: answers `TAKE`, and is what a child process prints."""

    port: int
    secret: str


@dataclass(frozen=True)
class Failure:
    """Why a child process has no JVM, in its own words; no secret is in it."""

    failure: str


class State(StrEnum):
    """What a server does."""

    IDLE = "idle"
    PREPARING = "preparing"
    READY = "ready"
    IN_USE = "in use"
    ENDING = "ending"


@dataclass(frozen=True)
class ServerState:
    """Answers `STATE` and `STOP`."""

    state: State
    folder: str
    """In which the command was that the JVM is prepared for; empty without one."""
    idle_minutes: float
    """After how long without a command it ends."""
    failure: str
    """Why the last JVM could not be prepared; empty if it could."""


Message = TypeVar("Message", Address, Failure, ServerState)


def line_of(message: Address | Failure | ServerState) -> bytes:
    """A message as one line."""
    return TypeAdapter(type(message)).dump_json(message) + b"\n"


def message_in(line: bytes, kind: type[Message]) -> Message:
    """The message of a kind that a line is.

    Raises:
        ValueError: it is something else.
    """
    return TypeAdapter(kind).validate_json(line)
