"""`snaploom check`: verifies published data against the manifest, for people and monitoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.cli import options
from snaploom.cli.console import (
    OutputForm,
    counted,
    message_console,
    print_json,
    result_console,
)
from snaploom.cli.snapshots import Place, published_state
from snaploom.errors import ManifestCorrupt
from snaploom.output.foldercheck import Fault, FaultKind
from snaploom.run.published.outputcheck import CheckRequest, check_output, live_times
from snaploom.run.runevents import signal_handlers

_FIXES: Mapping[FaultKind, str] = {
    FaultKind.LOG: "restore metadata/ from a backup; without one, 'snaploom repair --help'",
    FaultKind.CHECKPOINT: "nothing at once, since readers fall back on the entries; if it stays "
    "after the next runs, restore metadata/ from a backup",
    FaultKind.DOCUMENT: "restore the document from a backup, or publish the snapshots that need "
    "it anew ('snaploom restate')",
    FaultKind.TABLE: "run the output once: it brings the table to the state of the manifest; if it "
    "stays, find out what else writes to the table",
    FaultKind.FILE: "restore the file from a backup, or publish its snapshot anew "
    "('snaploom restate')",
    FaultKind.ROWS: "publish the snapshot anew ('snaploom restate'), and find out what changed "
    "its files",
    FaultKind.SCHEMA: "publish the snapshot anew ('snaploom restate'), and find out what changed "
    "its files",
    FaultKind.ROOT_KEY: "correct the root's data and publish the snapshot anew "
    "('snaploom restate'), or name columns in `rootKey` that identify a row",
}
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
    keys of the root that are unique, where the output has a `rootKey`.
    """
    asked = tuple(options.time_of(text, "--snapshot", _TIME_HINT) for text in snapshot)
    with signal_handlers() as interruption:
        try:
            store, state = published_state(place, file, choice=project.choice)
        except ManifestCorrupt as error:
            found = f"{error.message}: {error.found}"
            return _show([Fault(FaultKind.LOG, "metadata/manifest/", found)], place, 0, 0, output)
        times = live_times(state, asked, "--snapshot")
        spec = project.read(file).bundle(place).output.spec if file else None
        request = CheckRequest(store, state, times, spec, options.allowed_by(allow))
        faults = check_output(
            request,
            files_only,
            lambda line: message_console().print(line, markup=False),
            interruption,
        )
    return _show(faults, store.uri, state.seq, len(times), output)


def _show(faults: Sequence[Fault], uri: str, seq: int, snapshots: int, form: OutputForm) -> int:
    if form is OutputForm.JSON:
        listed: list[JsonValue] = [fault.document for fault in faults]
        print_json({"folder": uri, "sequence": seq, "snapshots": snapshots, "faults": listed})
        return int(bool(faults))
    console = result_console()
    for fault in faults:
        console.print(str(fault), markup=False, style="red")
    for kind in FaultKind:
        if any(fault.kind is kind for fault in faults):
            console.print(f"fix of {kind.value}: {_FIXES[kind]}", markup=False)
    end = counted(len(faults), "fault") if faults else "no fault"
    shown = counted(snapshots, "snapshot")
    console.print(f"{uri} at manifest {seq}: {shown}, {end}.", markup=False)
    return int(bool(faults))
