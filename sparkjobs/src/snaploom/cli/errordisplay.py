"""Prints the error of a failed command, and chooses the exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points

from cyclopts import CycloptsError, UnknownCommandError

from snaploom.cli.console import message_console, print_error
from snaploom.confidential import without_secrets
from snaploom.errors import SnaploomError
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.ondemand import missing_package
from snaploom.policy.variables import DEBUG_VARIABLE

INTERNAL_ERROR = 1


def show_failure(error: Exception, arguments: Sequence[str]) -> int:
    """Print what went wrong to standard error; returns the exit code."""
    if isinstance(error, CycloptsError):
        error = _misused(error, arguments)
    elif isinstance(error, ImportError):
        error = missing_package(error) or error
    if isinstance(error, SnaploomError):
        print_error(error)
        return error.exit_code
    console = message_console()
    first = str(error).splitlines()[0] if str(error) else ""
    summary = without_secrets(f"internal error: {type(error).__name__}: {first}")
    console.print(summary, style="bold red", markup=False)
    if os.environ.get(DEBUG_VARIABLE):
        trace = without_secrets("".join(traceback.format_exception(error)))
        console.print(trace, markup=False)
    else:
        console.print(
            f"This is a fault of Snaploom. Set {DEBUG_VARIABLE}=1 to see where, and report it."
        )
    return INTERNAL_ERROR


def _misused(error: CycloptsError, arguments: Sequence[str]) -> InvalidDeclarations:
    hint = f"see {' '.join(('snaploom', *(error.command_chain or ()), '--help'))}"
    if isinstance(error, UnknownCommandError):
        hint += "".join(_missing_commands())
    finding = make_finding(
        "SL191",
        _message(error),
        found=" ".join(["snaploom", *arguments]),
        hint=hint,
    )
    return InvalidDeclarations([finding])


def _missing_commands() -> Iterator[str]:
    entries = entry_points(group="snaploom.commands")
    for entry in entries:
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            yield f"; the commands of {entry.name} are not installed: {error}"
    if "operator" not in entries.names:
        yield "; commands for a cluster need another package: pip install snaploom-operator"


def _message(error: CycloptsError) -> str:
    try:
        return " ".join(str(error).split())
    except ImportError:  # it lists all commands, and loads those whose extra is not installed
        return f'Unknown command "{(error.unused_tokens or [""])[0]}".'
