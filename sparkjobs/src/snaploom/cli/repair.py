"""`snaploom gc`, `repair`, `migrate` and `check`: clean, rebuild, move and verify outputs."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom import ondemand
from snaploom.cli import options
from snaploom.cli.console import OutputForm, message_console, print_json, result_console
from snaploom.cli.snapshots import Place, folder_named, published_state
from snaploom.confidential import visible
from snaploom.errors import ManifestCorrupt
from snaploom.installed import VERSION
from snaploom.loading.nearmisses import counted
from snaploom.models.common import NANOS_PER_MICROSECOND, format_instant, now
from snaploom.models.findings import InvalidDeclarations, refuse
from snaploom.models.outputdataset import OutputDataset
from snaploom.output.folder import Run, open_folder
from snaploom.output.foldercheck import Fault, FaultKind
from snaploom.output.gc import (
    Garbage,
    Verdict,
    collect_garbage,
    find_garbage,
    promised_grace,
    refuse_held,
)
from snaploom.output.history import folder_identity, folder_settings, left_open
from snaploom.output.icebergtable import TableLibrary
from snaploom.output.layout import new_run_id
from snaploom.output.manifest import model_nodes
from snaploom.output.repair import Findings, find_snapshots, restore
from snaploom.output.state import EMPTY, FolderState
from snaploom.output.tablemove import move_table
from snaploom.plan.plan import plan_offline
from snaploom.run.folders import open_named
from snaploom.run.published.outputcheck import CheckRequest, check_output, live_times
from snaploom.run.runevents import signal_handlers

# `snaploom gc`: removes what crashed runs and deleted snapshots left behind, and nothing else.


def gc(
    place: Place,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    grace: Annotated[
        timedelta | None,
        Parameter(
            help="Time for which leftovers and deleted files stay: `90m`, `2h`, `1d`; omitted, the "
            "`readerGrace` of the output as of its last run."
        ),
    ] = None,
    below_reader_grace: Annotated[
        bool, Parameter(help="Allow a `--grace` that is shorter than the `readerGrace`.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Only list what would be removed.")] = False,
    allow: options.Allow = (),
    now_text: options.Now = None,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Remove files that no snapshot refers to: staging, uncommitted and deleted ones.

    Runs that did not commit their files are revoked first, so that nothing is ever removed under a
    run that could still publish it. Files that Snaploom did not write are listed and kept. Where
    the output is a table of a catalog, `-f` leads to it: what it shows stays.
    """
    moment = options.instant_of(now_text)
    if file:
        declared_output = project.read(file).bundle(place).output
        store = open_named(declared_output.spec.output_folder.folder_uri)
        opened = open_folder(store, _library("gc", declared_output, allow))
    else:
        opened = open_folder(open_named(folder_named(place)))
    state = opened.read(writes=not dry_run)
    declared = promised_grace(state, moment)
    nanos = declared
    if grace is not None:
        nanos = grace // timedelta(microseconds=1) * NANOS_PER_MICROSECOND
    if nanos < declared and not below_reader_grace:
        raise _too_short(grace, declared)
    found = find_garbage(opened.store, state, moment, nanos)
    removed: Sequence[Garbage] = ()
    if dry_run:
        refuse_held(opened, found, state)
    else:
        removed = collect_garbage(opened, found, Run(new_run_id(moment), VERSION, now))
    if output is OutputForm.JSON:
        print_json(_collected_document(opened.store.uri, found, removed))
    else:
        _print_collected(result_console(), found, removed, dry_run)
    return 0


def _library(command: str, output: OutputDataset, allow: options.Allow) -> TableLibrary | None:
    """The way to the catalog in which an output is a table; None where it is in none."""
    if output.spec.output_folder.table is None:
        return None
    allowed = options.allowed_by(allow)
    session = ondemand.build_session(f"snaploom {command}", output.spec.run, allowed)
    return ondemand.table_library(session, output)


def _too_short(grace: timedelta | None, declared: int) -> InvalidDeclarations:
    promised = timedelta(microseconds=declared // NANOS_PER_MICROSECOND)
    return options.refuse_request(
        "readers were promised that deleted files stay for longer",
        "--grace",
        found=str(grace),
        expected=f"at least {promised}, the readerGrace of the output",
        hint="--below-reader-grace, when nobody reads what was deleted any more",
    )


def _collected_document(
    uri: str, found: Sequence[Garbage], removed: Sequence[Garbage]
) -> JsonValue:
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


def _print_collected(
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


# `snaploom repair`: rebuilds the lost manifest of an output from its data.


def repair(
    name: options.OutputName,
    /,
    *,
    file: options.Files,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    yes: Annotated[
        bool, Parameter(help="Write the manifest; without, only show what it would hold.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Only show, whatever else is given.")] = False,
    allow: options.Allow = (),
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Make the manifest of an output anew from its files, when it is lost.

    A snapshot becomes live again where its files prove it: of one run, complete, and with rows and
    one schema in their footers. Everything else is listed and left; nothing is ever deleted. Stop
    whatever publishes to the output before.
    """
    bundle = project.read(file).bundle(name)
    declared = bundle.output
    plan = plan_offline(bundle)
    refuse(plan.findings)
    store = open_named(declared.spec.output_folder.folder_uri)
    settings = folder_settings(declared)
    library = _library("repair", declared, allow)
    found = find_snapshots(store, settings, library)
    is_done = yes and not dry_run
    if is_done:
        run, owner = Run(new_run_id(now()), VERSION, now), folder_identity(declared)
        restore(store, settings, owner, model_nodes(plan.tree), found, run, library)
    if output is OutputForm.JSON:
        print_json(_repair_document(store.uri, found, is_done))
    else:
        _print_repaired(result_console(), found, is_done)
    return 1 if found.left else 0


def _repair_document(uri: str, found: Findings, is_done: bool) -> JsonValue:
    snapshots: list[JsonValue] = [
        {
            "time": format_instant(one.time),
            "partition": one.partition,
            "rows": one.rows,
            "files": len(one.files),
            "runId": one.run_id,
        }
        for one in found.snapshots
    ]
    left: list[JsonValue] = [
        {"place": one.place, "files": one.files, "why": one.why} for one in found.left
    ]
    return {"folder": uri, "repaired": is_done, "snapshots": snapshots, "left": left}


def _print_repaired(console: Console, found: Findings, is_done: bool) -> None:
    table = Table("what", "place", "rows", "files", "why", box=None, pad_edge=False)
    what = "live again" if is_done else "would be live"
    for one in found.snapshots:
        table.add_row(what, one.partition, f"{one.rows:,}", str(len(one.files)), one.run_id)
    for left in found.left:
        table.add_row("left", visible(left.place), "-", str(left.files), visible(left.why))
    if table.row_count:
        console.print(table)
    console.print(
        f"{len(found.snapshots)} snapshots {'are' if is_done else 'would be'} live again, "
        f"{len(found.left)} places are left as they are."
    )
    if found.snapshots and not is_done:
        console.print("Nothing was written; add --yes to do it.")


# `snaploom migrate`: moves the table of an output from its folder to a catalog.


def migrate(
    name: options.OutputName,
    /,
    *,
    file: options.Files,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    allow: options.Allow = (),
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Move the Iceberg table in an output's folder to the catalog that its declaration names.

    All files stay in place, and so do snapshots, branches and tags of the table. Runs by the
    old declaration publish nothing any more. A command that was interrupted is ended by the next.
    """
    declared = project.read(file).bundle(name).output
    library = _library("migrate", declared, allow)
    if library is None:
        raise options.refuse_request(
            "the declaration names no table of a catalog to move to",
            "spec.outputFolder.table",
            found="none",
            expected="catalog and name, as in `table: {catalog: lake, name: shop.orders_wide}`",
        )
    store = open_named(declared.spec.output_folder.folder_uri)
    settings, owner = folder_settings(declared), folder_identity(declared)
    run = Run(new_run_id(now()), VERSION, now)
    state = move_table(store, settings, owner, run, library, open_names=left_open(declared))
    if output is OutputForm.JSON:
        count = len(state.versions)
        print_json({"folder": store.uri, "table": settings.table, "snapshots": count})
    else:
        shown = counted(len(state.versions), "published snapshot")
        result_console().print(
            f"{settings.table} is the table of {store.uri}: {shown}.", markup=False
        )
    return 0


# `snaploom check`: verifies published data against the manifest, for people and monitoring.


_FIXES: Mapping[FaultKind, str] = {
    FaultKind.LOG: "restore metadata/ from a backup; without one, 'snaploom repair --help'",
    FaultKind.CHECKPOINT: "nothing at once, since readers fall back on the entries; if it stays "
    "after the next runs, restore metadata/ from a backup",
    FaultKind.DOCUMENT: "restore the document from a backup, or publish the snapshots that need "
    "it anew ('snaploom restate')",
    FaultKind.TABLE: "run the output once, which completes the log, or names what is lost; what "
    "others changed comes back when its snapshot is published anew ('snaploom restate')",
    FaultKind.FILE: "restore the file from a backup, or publish its snapshot anew "
    "('snaploom restate')",
    FaultKind.ROWS: "publish the snapshot anew ('snaploom restate'), and find out what changed "
    "its files",
    FaultKind.SCHEMA: "publish the snapshot anew ('snaploom restate'), and find out what changed "
    "its files",
    FaultKind.ROOT_KEY: "correct the root's data and publish the snapshot anew "
    "('snaploom restate'), or name columns in `rootKey` that identify a row",
}
_NOT_LOOKED_AT = (
    "was not looked at: name the output and its declarations (-f), without --files-only"
)
_TIME_HINT = "'snaploom snapshots' lists the times"


def check(
    place: Place,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    files_only: Annotated[
        bool,
        Parameter(help="Check the manifest and names and sizes of files only, without Spark."),
    ] = False,
    snapshot: Annotated[
        tuple[str, ...],
        Parameter(help="Time of a snapshot to read; omitted, every one that is live."),
    ] = (),
    allow: options.Allow = (),
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Compare what is in an output's folder with what was published; nothing is changed.

    The manifest log must have no gap, and agree with its checkpoints. Every file must be there
    in its size, readable, with the rows and the schema that were published, and (with `-f`) with
    keys of the root that are unique, where the output has a `rootKey`. A table of a catalog is
    compared with `-f` only, and not with `--files-only`; the result shows whether it was.
    """
    asked = tuple(options.time_of(text, "--snapshot", _TIME_HINT) for text in snapshot)
    with signal_handlers() as interruption:
        try:
            store, state = published_state(place, file, choice=project.choice)
        except ManifestCorrupt as error:
            found = f"{error.message}: {error.found}"
            fault = Fault(FaultKind.LOG, "metadata/manifest/", found)
            return _show([fault], place, EMPTY, 0, False, output)
        times = live_times(state, asked, "--snapshot")
        declared = project.read(file).bundle(place).output if file else None
        is_led = declared is not None and not files_only
        library = _library("check", declared, allow) if declared is not None and is_led else None
        spec = None if declared is None else declared.spec
        request = CheckRequest(store, state, times, spec, options.allowed_by(allow), library)
        faults = check_output(
            request,
            files_only,
            lambda line: message_console().print(line, markup=False),
            interruption,
        )
    return _show(faults, store.uri, state, len(times), library is not None, output)


def _show(
    faults: Sequence[Fault],
    uri: str,
    state: FolderState,
    snapshots: int,
    is_table_checked: bool,
    form: OutputForm,
) -> int:
    seq, table = state.seq, None if state.settings is None else state.settings.table
    if form is OutputForm.JSON:
        listed: list[JsonValue] = [fault.document for fault in faults]
        compared: JsonValue = table and {"name": table, "isChecked": is_table_checked}
        print_json({"folder": uri, "sequence": seq, "snapshots": snapshots, "table": compared,
                    "faults": listed})  # fmt: skip
        return int(bool(faults))
    console = result_console()
    for fault in faults:
        console.print(str(fault), markup=False, style="red")
    for kind in FaultKind:
        if any(fault.kind is kind for fault in faults):
            console.print(f"fix of {kind.value}: {_FIXES[kind]}", markup=False)
    end = counted(len(faults), "fault") if faults else "no fault"
    shown = counted(snapshots, "snapshot")
    if table is not None:
        what = "was compared with the manifest" if is_table_checked else _NOT_LOOKED_AT
        console.print(f"table {table} {what}.", markup=False)
    console.print(f"{uri} at manifest {seq}: {shown}, {end}.", markup=False)
    return int(bool(faults))
