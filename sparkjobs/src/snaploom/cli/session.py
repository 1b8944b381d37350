"""`snaploom session`: keeps a JVM of Spark ready, so that commands of this user need not wait."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import message_console, result_console
from snaploom.errors import ArgumentInvalid
from snaploom.jobs.sessionserver.client import ask_to_stop, server_state
from snaploom.jobs.sessionserver.messages import ServerState, State
from snaploom.jobs.sessionserver.startup import start_server

LONGEST = 24 * 60
"""Minutes: a server that was forgotten is gone on the next day."""
NOT_UP = "no session server is up"


def start(
    *,
    idle_minutes: Annotated[
        float,
        Parameter(
            validator=Number(gt=0, lte=LONGEST),
            show_default=True,
            help="Minutes without a command that needs Spark, after which it ends by itself.",
        ),
    ] = 30,
) -> int:
    """Keep a JVM of Spark ready for commands of this user, in the background.

    When a command that needed Spark has ended, a JVM is prepared for the next one with the same
    settings, environment and folder. It serves that one command, so that results are the same.
    It takes about 600 MB of memory.
    """
    try:
        is_new = start_server(idle_minutes * 60)
    except OSError as error:
        raise ArgumentInvalid(
            "no session server can be started for this user",
            path="XDG_CACHE_HOME",
            found=str(error),
            expected="a process that stays up, with a socket in a folder of caches in which only "
            "this user can write",
            hint="set XDG_CACHE_HOME to such a folder with a short path, for later commands too",
        ) from error
    state = server_state()
    result_console().print(
        f"{'started' if is_new else 'up already'}; ends after "
        f"{idle_minutes if state is None else state.idle_minutes:g} minutes without a command"
    )
    return 0


def status() -> int:
    """Show what the session server does, and for which folder a JVM is ready."""
    state = server_state()
    result_console().print(NOT_UP if state is None else _shown(state))
    if state is not None and state.failure:
        message_console().print(f"the last JVM could not be prepared: {state.failure}")
    return 0


def stop() -> int:
    """End the session server, and the JVM that is ready; a command that has one goes on."""
    result_console().print(NOT_UP if ask_to_stop() is None else "stopped")
    return 0


def _shown(state: ServerState) -> str:
    match state.state:
        case State.IDLE:
            return "up; a JVM is prepared after the next command that needs Spark"
        case State.PREPARING:
            return f"a JVM is being prepared for commands in {state.folder}"
        case State.READY:
            return f"a JVM is ready for commands in {state.folder}"
        case State.IN_USE:
            return "a command has the JVM; the next one is prepared when it has ended"
        case State.ENDING:
            return "ending, with the command that has the JVM"
