"""`snaploom gc`: removes what crashed runs and deleted snapshots left behind, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import Form, Now, folder_uri, instant_of, refuse_request
from snaploom.jobs.namedfolders import open_named
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.times import NANOS_PER_MICROSECOND, now
from snaploom.storage.folder import open_folder
from snaploom.storage.gc import (
    Garbage,
    Verdict,
    collect_garbage,
    find_garbage,
    promised_grace,
)
from snaploom.storage.layout import new_run_id
from snaploom.storage.writeridentity import Run
from snaploom.version import VERSION
from snaploom.visibletext import visible


def gc(
    folder: Annotated[str, Parameter(name="FOLDER", help="URI or absolute path of an output.")],
    /,
    *,
    grace: Annotated[
        timedelta | None,
        Parameter(
            help="How long leftovers and deleted files stay: `90m`, `2h`, `1d`; omitted, the "
            "`readerGrace` of the output as of its last run."
        ),
    ] = None,
    below_reader_grace: Annotated[
        bool, Parameter(help="Allow a `--grace` that is shorter than the `readerGrace`.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Only list what would be removed.")] = False,
    now_text: Now = None,
    output: Form = OutputForm.TEXT,
) -> int:
    """Remove files that no snapshot refers to: staging, uncommitted and deleted ones.

    Runs that did not commit their files are revoked first, so that nothing is ever removed under a
    run that could still publish it. Files that Snaploom did not write are listed and kept.
    """
    moment = instant_of(now_text)
    opened = open_folder(open_named(folder_uri(folder)))
    state = opened.log.read()
    declared = promised_grace(state, moment)
    nanos = declared
    if grace is not None:
        nanos = grace // timedelta(microseconds=1) * NANOS_PER_MICROSECOND
    if nanos < declared and not below_reader_grace:
        raise _too_short(grace, declared)
    found = find_garbage(opened.store, state, moment, nanos)
    removed: Sequence[Garbage] = ()
    if not dry_run:
        run = Run(new_run_id(moment), VERSION, now)
        removed = collect_garbage(opened, found, run)
    if output is OutputForm.JSON:
        print_json(_document(opened.store.uri, found, removed))
    else:
        _print(result_console(), found, removed, dry_run)
    return 0


def _too_short(grace: timedelta | None, declared: int) -> InvalidDeclarations:
    promised = timedelta(microseconds=declared // NANOS_PER_MICROSECOND)
    return refuse_request(
        "readers were promised that deleted files stay for longer",
        "--grace",
        found=str(grace),
        expected=f"at least {promised}, the readerGrace of the output",
        hint="--below-reader-grace, when nobody reads what was deleted any more",
    )


def _document(uri: str, found: Sequence[Garbage], removed: Sequence[Garbage]) -> JsonValue:
    gone = {item.key for item in removed}
    return {
        "folder": uri,
        "removed": len(removed),
        "garbage": [
            {
                "key": item.key,
                "kind": item.kind.value,
                "verdict": item.verdict.value,
                "bytes": item.size,
                "runId": item.run_id,
                "why": item.why,
                "removed": item.key in gone,
            }
            for item in found
        ],
    }


def _print(
    console: Console, found: Sequence[Garbage], removed: Sequence[Garbage], dry_run: bool
) -> None:
    if not found:
        console.print("Nothing to remove.")
        return
    table = Table("what", "file", "bytes", "why", box=None, pad_edge=False)
    gone = {item.key for item in removed}
    for item in found:
        would_go = item.verdict is Verdict.REMOVE
        what = "removed" if item.key in gone else "would go" if dry_run and would_go else "kept"
        table.add_row(what, visible(item.key), str(item.size), visible(item.why))
    console.print(table)
    size = sum(item.size for item in removed)
    console.print(f"{len(removed)} of {len(found)} files removed, {size} bytes.")
