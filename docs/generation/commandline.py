"""The page of the command line, from the very object that parses it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from enum import Enum

from cyclopts import App
from cyclopts.argument import Argument

from generation.markdown import NOTE, block, table
from snaploom.cli.main import build_app

EXIT_CODES = (
    (0, "Done, or nothing to do."),
    (1, "Failed; the message has the reason."),
    (2, "Not valid: the declarations, the options, or what was asked for."),
    (3, "Every error is an ambiguous or an unreachable join tree."),
    (4, "Another run holds the lease of the output, and the snapshot is still unpublished."),
    (5, "The root has no snapshot at all, with `--strict` or `run.onEmptyRoot: Fail`."),
    (130, "Interrupted by Ctrl-C or SIGTERM."),
)  # fmt: skip
CODES_OF = {
    "init": "0, 1, 2",
    "validate": "0, 2, 3",
    "render": "0, 2, 3",
    "plan": "0, 1 (a snapshot would fail, or preflight did), 2, 3, 5, 130",
    "diff": "0 (all stays the same), 1 (something differs), 2, 3",
    "contract": "0, 1 (`--check` found a broken promise), 2, 3",
    "run": "0, 1 (something that was due is not published), 2, 3, 4, 5, 130",
    "restate": "0, 1 (the snapshot is as it was), 2, 3, 4, 130",
    "backfill": "0, 1 (something that was due is not published), 2, 3, 4, 5, 130",
    "check": "0, 1 (something is not as it was published), 2, 130",
    "snapshots": "0, 1, 2",
    "files": "0, 1, 2",
    "graph": "0, 2, 3 (the drawing shows the ties)",
    "page": "0, 1 (its page shows why a folder cannot be read), 2, 3 (the drawing shows the ties)",
    "serve": "2 (cannot begin), 130 (how it ends)",
    "drivers install": "0, 2 (not fetched, another jar, or no such driver)",
    "drivers list": "0, 2 (the lock file cannot be read)",
    "gc": "0, 1, 2",
    "repair": "0, 1 (files are left that prove no snapshot), 2, 3",
    "migrate": "0, 1, 2",
    "index create": "0, 1, 2, 130",
    "index build": "0, 1, 2, 130",
    "index refresh": "0, 1, 2, 130",
    "index apply": "0, 1, 2, 130",
    "index describe": "0, 1, 2, 130",
    "index list": "0, 1, 2",
    "index stats": "0, 1, 2",
    "index explain": "0, 1, 2, 130",
    "index advise": "0, 1, 2, 130",
    "index sort": "0, 1, 2, 130",
    "index export": "0, 1, 2, 130",
    "index import": "0, 1, 2, 130",
    "index drop": "0, 1, 2, 130",
    "index vacuum": "0, 1, 2, 130",
    "index recover": "0, 1, 2, 130",
    "index compact": "0, 1, 2, 130",
    "schema": "0, 1 (what is asked for cannot be read together), 2",
    "crds": "0, 1 (`--check` found a difference), 2",
    "status": "0, 1, 2, 130 (also how `--watch` ends)",
    "logs": "0, 1, 2, 130 (also how `--follow` is stopped)",
    "trigger": "0, 1, 2",
    "suspend": "0, 1, 2",
    "resume": "0, 1, 2",
    "operator run": "0 (stopped by SIGTERM), 1, 2, 130",
    "operator settings": "0, 1 (the settings are wrong)",
    "operator pages": "0 (stopped by SIGTERM or Ctrl-C), 1, 2",
    "operator webhook": "0 (stopped by SIGTERM or Ctrl-C), 1, 2",
}
"""Exit codes by command; a new command without an entry stops the generator."""
SHARED = "Arguments and options of several commands"
"""Heading of those that commands have alike."""
_COLUMNS = ["argument or option", "meaning"]
TYPES = {
    "Path": "path",
    "str": "text",
    "int": "number",
    "float": "number",
    "bool": "flag",
    "timedelta": "duration",
}


def command_page() -> str:
    """The page of all commands."""
    app = build_app()
    commands = dict(commands_of(app))
    times = Counter(row for command in commands.values() for row in _rows(command))
    shared = [row for row, count in times.items() if count > 1]
    overview = [
        [f"[`{name}`](#snaploom-{name.replace(' ', '-')})", _summary(command)]
        for name, command in commands.items()
    ]
    return "\n".join([
        "# The command line\n",
        NOTE,
        "Results go to standard output, findings, progress and errors to standard error. With "
        "`-o json` standard output has one JSON document and nothing else. `NO_COLOR` turns "
        f"colours off. `snaploom COMMAND --help` prints the same as this page. {SHARED} are "
        f"[below](#{SHARED.lower().replace(' ', '-')}).\n",
        table(["command", "what it does"], overview),
        "## Exit codes\n",
        table(["code", "meaning"], [[f"`{code}`", meaning] for code, meaning in EXIT_CODES]),
        f"## {SHARED}\n",
        table(_COLUMNS, map(list, shared)),
        *(_section(name, command, shared) for name, command in commands.items()),
    ])  # fmt: skip


def commands_of(app: App, group: str = "") -> Iterator[tuple[str, App]]:
    """Every command by what is typed; groups are only described by what they hold."""
    for name in app:
        if name.startswith("-"):
            continue
        if app[name].default_command is None:
            yield from commands_of(app[name], f"{group}{name} ")
        else:
            yield f"{group}{name}", app[name]


def _summary(command: App) -> str:
    return str(command.help).strip()


def _rows(command: App) -> list[tuple[str, str]]:
    """Return what the tables show of arguments and options; the usage shows what is required."""
    return [
        (_typed(item), _meaning(item))
        for item in command.assemble_argument_collection()
        if item.show
    ]


def _typed(argument: Argument) -> str:
    if not argument.name.startswith("-"):
        return f"`{argument.name}`"
    kind = kind_of(argument)
    return _names(argument) + ("" if kind == TYPES["bool"] else f" {kind}")


def _meaning(argument: Argument) -> str:
    default = "" if argument.required else default_of(argument)
    return _help(argument) + (f" Default {default}." if default.strip("`") else "")


def _section(name: str, command: App, shared: Collection[tuple[str, str]]) -> str:
    arguments = [item for item in command.assemble_argument_collection() if item.show]
    places = [item for item in arguments if not item.name.startswith("-")]
    options = [item for item in arguments if item.name.startswith("-")]
    rows = _rows(command)
    usage = " ".join(["snaploom", name, *map(_place, places), *_usage(options)])
    parts = [f"## snaploom {name}\n", *_description(command), block("text", usage)]
    if own := [list(row) for row in rows if row not in shared]:
        parts.append(table(_COLUMNS, own))
    if common := ", ".join(_first_name(row) for row in rows if row in shared):
        parts.append(f"{'Also' if own else 'Takes'} {common}.\n")
    parts.append(f"Exit codes: {CODES_OF[name]}.\n")
    return "\n".join(parts)


def _first_name(row: tuple[str, str]) -> str:
    return row[0].partition(",")[0].partition(" ")[0]


def _description(command: App) -> Iterator[str]:
    text = inspect.getdoc(command.default_command) or _summary(command)
    for paragraph in text.split("\n\n"):
        yield " ".join(paragraph.split()) + "\n"


def _place(argument: Argument) -> str:
    shown = f"{argument.name}..." if takes_many(argument) else argument.name
    return shown if argument.required else f"[{shown}]"


def _usage(options: Iterable[Argument]) -> Iterator[str]:
    for item in options:
        if item.required:
            yield f"{item.name} {kind_of(item).upper()}..."
    if not all(item.required for item in options):
        yield "[OPTIONS]"


def takes_many(argument: Argument) -> bool:
    """Whether several values may be given."""
    return str(argument.hint).startswith(("tuple", "list"))


def names_of(argument: Argument) -> tuple[str, ...]:
    """The names of an option, the short ones too."""
    given = (argument.parameter.name or ()) if argument.parameter.name else (argument.name,)
    return tuple(name for name in given if name.startswith("-"))


def _names(argument: Argument) -> str:
    return ", ".join(f"`{name}`" for name in names_of(argument))


def kind_of(argument: Argument) -> str:
    """The type of a value, or its choices."""
    choices = argument.get_choices()
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    hint = getattr(argument.hint, "__name__", "") if isinstance(argument.hint, type) else ""
    text = hint or str(argument.hint)
    return next(name for kind, name in TYPES.items() if kind in text)


def default_of(argument: Argument) -> str:
    """Return the default value; empty if there is none."""
    if argument.required:
        return "**required**"
    value = argument.field_info.default
    if value in (None, (), False, inspect.Parameter.empty):
        return ""
    if isinstance(value, timedelta):
        return f"`{value // timedelta(minutes=1)}m`"
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _help(argument: Argument) -> str:
    return str(argument.parameter.help or "")
