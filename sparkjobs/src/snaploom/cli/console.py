"""Destinations of text: results to standard output, everything about them to standard error.

Colours follow the terminal and NO_COLOR; with `-o json` standard output carries one document and
nothing else, so that it can be piped.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Protocol, TextIO

from cyclopts import CycloptsError, MissingArgumentError, UnknownCommandError
from pydantic import JsonValue
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from snaploom.confidential import in_ascii, json_visible, visible_lines, without_secrets
from snaploom.errors import SnaploomError
from snaploom.installed import missing_package
from snaploom.loading.nearmisses import counted
from snaploom.models.findings import Finding, InvalidDeclarations, make_finding
from snaploom.policy.variables import DEBUG_VARIABLE
from snaploom.run.runevents import preflight_finding

PIPE_WIDTH = 400
"""Columns of a table that is not on a terminal: more than any of ours has."""


class OutputForm(StrEnum):
    """Form of a command's result."""

    TEXT = "text"
    JSON = "json"


def result_console() -> Console:
    """For results."""
    return _console(sys.stdout)


def message_console() -> Console:
    """For progress, findings and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    """Lines are never wrapped and tables never cut in a pipe, so that tools can read them."""
    width = None if stream.isatty() else PIPE_WIDTH
    return _PlainConsole(
        file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False, width=width
    )


class _PlainConsole(Console):
    """Text is text: what names and messages of others hold of escape sequences is shown.

    Drawings are in ASCII where the terminal shows nothing else.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        chosen = options or self.options
        for segment in super().render(renderable, chosen):
            if segment.control or not segment.text:
                yield segment
            else:
                text = visible_lines(segment.text)
                yield Segment(in_ascii(text) if chosen.ascii_only else text, segment.style)


def print_json(document: JsonValue) -> None:
    """One JSON document on standard output."""
    text = json_visible(json.dumps(document, indent=2, ensure_ascii=False))
    print(text, flush=True)  # noqa: T201 - the result


def print_documents(documents: Sequence[JsonValue]) -> None:
    """One JSON document as it is, several as a list."""
    print_json(documents[0] if len(documents) == 1 else [*documents])


class Shown(Protocol):
    """A result whose text is for people."""

    @property
    def document(self) -> JsonValue:
        """The contract of `-o json`."""


def show_result(result: Shown, form: OutputForm) -> None:
    """Print a result on standard output."""
    if form is OutputForm.JSON:
        print_json(result.document)
    else:
        result_console().print(str(result), markup=False)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    message_console().print(f"warning {message}", style="yellow", markup=False)


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """Findings for people: where, what, found, expected and what to do."""
    for finding in findings:
        style = "bold red" if finding.is_error else "bold yellow"
        console.print(_heading(finding.severity.value.lower(), finding.code, finding, style))
        _print_body(finding, console)


def _heading(severity: str, name: str, finding: Finding, style: str) -> Text:
    about = finding.place
    return Text.assemble((f"{severity} {name}", style), f" {about}" if about else "")


def _print_body(finding: Finding, console: Console) -> None:
    console.print(Text(f"  {finding.message}"))
    for label, text in (
        ("found", finding.found),
        ("expected", finding.expected),
        ("fix", finding.hint),
    ):
        if text:
            indented = text.replace("\n", "\n" + " " * 12)
            console.print(Text.assemble((f"  {label + ':':<10}", "dim"), indented))


def summary_of(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`."""
    listed = list(findings)
    errors = sum(finding.is_error for finding in listed)
    return f"{counted(errors, 'error')}, {counted(len(listed) - errors, 'warning')}"


def print_error(error: SnaploomError, place: Callable[[Finding], Finding] = lambda f: f) -> None:
    """An error for people, on standard error, in the form of a finding.

    `place` adds file and line to what is about a declared resource.
    """
    console = message_console()
    if isinstance(error, InvalidDeclarations):
        print_findings(error.findings, console)
        console.print(summary_of(error.findings), style="bold")
        return
    finding = place(preflight_finding(error))
    console.print(_heading("error", error.reason, finding, "bold red"))
    _print_body(finding, console)


# The error of a failed command, and its exit code.


INTERNAL_ERROR = 1
BEFORE_FILES = "names stand in front of -f, which takes all paths behind it"


def show_failure(error: Exception, arguments: Sequence[str]) -> int:
    """Print what went wrong to standard error; returns the exit code.

    Of `diff`, 1 means that something differs, so that all failures are 2 or more.
    """
    code = _show(error, arguments)
    return max(code, 2) if "diff" in arguments[:1] else code


def _show(error: Exception, arguments: Sequence[str]) -> int:
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
    if isinstance(error, MissingArgumentError) and {"-f", "--file"} & {*arguments}:
        hint = f"{BEFORE_FILES}; {hint}"
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
