"""`snaploom repair`: rebuilds the lost manifest of an output from its data."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import DEFAULT_PROJECT, Files, Form, OutputName, ProjectOptions
from snaploom.jobs.declarations.declarationfiles import refuse
from snaploom.jobs.namedfolders import open_named
from snaploom.models.times import format_instant, now
from snaploom.planning.plan import plan_offline
from snaploom.storage.fixedsettings import folder_identity, folder_settings
from snaploom.storage.layout import new_run_id
from snaploom.storage.repair import Findings, find_snapshots, restore
from snaploom.storage.schemadocuments import model_nodes
from snaploom.storage.writeridentity import Run
from snaploom.version import VERSION
from snaploom.visibletext import visible


def repair(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    yes: Annotated[
        bool, Parameter(help="Write the manifest; without, only show what it would hold.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Only show, whatever else is given.")] = False,
    output: Form = OutputForm.TEXT,
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
    found = find_snapshots(store, settings)
    is_done = yes and not dry_run
    if is_done:
        run = Run(new_run_id(now()), VERSION, now)
        restore(store, settings, folder_identity(declared), model_nodes(plan.tree), found, run)
    if output is OutputForm.JSON:
        print_json(_document(store.uri, found, is_done))
    else:
        _print(result_console(), found, is_done)
    return 1 if found.left else 0


def _document(uri: str, found: Findings, is_done: bool) -> JsonValue:
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


def _print(console: Console, found: Findings, is_done: bool) -> None:
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
