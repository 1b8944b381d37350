"""`snaploom`: finds the command, runs it, and turns every outcome into an exit code.

Commands are named by dotted path and imported when called, so that `--help` stays light. Other
packages add theirs through the entry-point group `snaploom.commands`: a module with
tables like the two below, which is light to import.

Exit codes: 0 done, or nothing to do; 1 failed; 2 not valid; 3 every error is an ambiguous or
unreachable join tree; 4 lease not obtained and the snapshot still unpublished; 5 the root has no
snapshot at all, where that is to fail; 130 interrupted.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from types import FrameType
from typing import Protocol, cast

from cyclopts import App, Parameter

from snaploom import ondemand
from snaploom.confidential import remember_environment
from snaploom.installed import VERSION
from snaploom.localfiles import end_process

COMMANDS = (
    ("init", "snaploom.cli.init:init", "Write a small model to start from."),
    ("validate", "snaploom.cli.validate:validate", "Check declarations, without touching data."),
    ("render", "snaploom.cli.validate:render", "Print declarations as an environment has them."),
    ("plan", "snaploom.cli.run:plan", "Show the join tree, and what a run would publish."),
    ("diff", "snaploom.cli.diff:diff", "Show what changed declarations would do."),
    ("run", "snaploom.cli.run:run", "Weave and publish every snapshot that is due."),
    ("restate", "snaploom.cli.run:restate", "Publish a corrected version of a snapshot."),
    ("backfill", "snaploom.cli.run:backfill", "Publish what is due in a span of history."),
    ("check", "snaploom.cli.repair:check", "Verify published data against the manifest."),
    ("snapshots", "snaploom.cli.snapshots:snapshots", "List what an output has published."),
    ("files", "snaploom.cli.snapshots:files", "List exactly the files that are published."),
    ("graph", "snaploom.cli.graph:graph", "Draw sources, relationships and the join tree."),
    ("gc", "snaploom.cli.repair:gc", "Remove what crashed runs and deleted snapshots left behind."),
    ("repair", "snaploom.cli.repair:repair", "Rebuild a lost manifest from the data."),
    ("migrate", "snaploom.cli.repair:migrate", "Move an output's Iceberg table to a catalog."),
    ("index create", "snaploom.cli.index.create:create", "Create a skipping index."),
    ("index build", "snaploom.cli.index.create:build", "Create it and index all files."),
    ("index refresh", "snaploom.cli.index.create:refresh", "Index what is new or changed."),
    ("index apply", "snaploom.cli.index.create:apply", "Apply SkippingIndex declarations."),
    ("index describe", "snaploom.cli.index.describe:describe", "Show what is kept, and how much."),
    ("index list", "snaploom.cli.index.describe:list_", "List the indexes below a folder."),
    ("index stats", "snaploom.cli.index.stats:stats", "Show index usage statistics."),
    ("index explain", "snaploom.cli.index.describe:explain", "Show which files a query reads."),
    ("index drop", "snaploom.cli.index.create:drop", "Delete a skipping index."),
    ("index vacuum", "snaploom.cli.index.create:vacuum", "Remove files that nothing needs."),
    ("index recover", "snaploom.cli.index.create:recover", "Clean up after a failure."),
    ("index export", "snaploom.cli.index.create:export", "Export an Xskipper metadata store."),
    (
        "index import",
        "snaploom.cli.index.create:import_",
        "Import an Xskipper metadata store.",
    ),
    ("index compact", "snaploom.cli.index.create:compact", "Merge small index segments."),
    ("drivers install", "snaploom.cli.drivers:install", "Fetch JDBC drivers, and lock them."),
    ("drivers list", "snaploom.cli.drivers:list_", "List the JDBC drivers that are known."),
    (
        "schema",
        "snaploom.cli.snapshots:schema",
        "Show what is published; JSON Schemas for editors.",
    ),
    ("crds", "snaploom.cli.validate:crds", "Write or check the Kubernetes resource definitions."),
)
GROUPS = {
    "drivers": "JDBC drivers of a project: fetched once, locked by their hashes.",
    "index": "Manage skipping indexes: what is kept about files, so that queries skip them.",
}
"""Commands that only hold others: `index create` is the command `create` of the group `index`."""
ENTRY_POINTS = "snaploom.commands"
_OWN = tuple(path.split() for path, _, _ in COMMANDS)
COLLECTED_AFTER = 500_000
"""Objects that are made before Python looks for garbage, in place of 700: a command imports some
400,000, which stay, and looking through them took a tenth of its time; every 50,000 of them still
took 0.02 s of 0.45."""
INTERRUPTED = 130


class CommandModule(Protocol):
    """Target of an entry point of the group."""

    COMMANDS: tuple[tuple[str, str, str], ...]
    """Name, dotted path of the function, and summary; the group of a command stands before it."""
    # GROUPS: Mapping[str, str], the groups that it adds with their summaries, where it has any.


def build_app(arguments: Sequence[str] = ()) -> App:
    """The command line as an object; also what the reference pages are generated from.

    Where the arguments name a command of ours, those of other packages are not looked for: each
    installed package would be asked for its own.
    """
    app = App(
        name="snaploom",
        help="Weaves declared data sources into wide, point-in-time tables on Spark.",
        version=VERSION,
        help_format="markdown",
        default_parameter=Parameter(negative=(), show_default=False),
        suppress_keyboard_interrupt=False,
        help_epilogue="Exit codes: 0 done, 1 failed, 2 not valid, 3 no unique join tree, "
        "4 lease not obtained, 5 root without snapshots, 130 interrupted.",
    )
    _add(app, GROUPS, COMMANDS)
    if any(list(arguments[: len(words)]) == words for words in _OWN):
        return app
    for entry in entry_points(group=ENTRY_POINTS):
        with suppress(ImportError, AttributeError):  # of a package that is there in part
            module = cast(CommandModule, entry.load())
            _add(app, getattr(module, "GROUPS", {}), module.COMMANDS)
    return app


def _add(app: App, groups: Mapping[str, str], commands: Iterable[tuple[str, str, str]]) -> None:
    for name, summary in groups.items():
        app.command(App(name=name, help=summary, help_epilogue=app.help_epilogue))
    for path, target, summary in commands:
        group, _, name = path.rpartition(" ")
        (app[group] if group else app).command(target, name=name, help=summary)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process; no traceback reaches a user."""
    gc.set_threshold(COLLECTED_AFTER)
    signal.signal(signal.SIGTERM, _end_as_by_key)
    end_process(run_command(sys.argv[1:] if arguments is None else list(arguments)))


def _end_as_by_key(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a command as Ctrl-C does; `run` handles both itself, once it is up."""
    raise KeyboardInterrupt


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    remember_environment(os.environ)
    try:
        outcome = build_app(arguments)(
            list(arguments),
            result_action="return_value",
            exit_on_error=False,
            print_error=False,
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201 - nothing else is needed any more
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; no reader is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback reaches a user
        return ondemand.show_failure(error, arguments)
    return outcome if isinstance(outcome, int) else 0


if __name__ == "__main__":
    main()
