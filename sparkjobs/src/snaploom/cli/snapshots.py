"""`snaploom snapshots`: what an output has published, from its manifest, without Spark."""

from __future__ import annotations

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import DEFAULT_PROJECT, Files, Form, ProjectOptions
from snaploom.cli.outputfolders import AtManifest, Place, published_state
from snaploom.models.times import format_instant
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.state import FolderState
from snaploom.visibletext import visible


def snapshots(
    place: Place,
    /,
    *,
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    manifest: AtManifest = None,
    output: Form = OutputForm.TEXT,
) -> int:
    """List the published snapshots of an output."""
    store, state = published_state(place, file, manifest, project.choice)
    if output is OutputForm.JSON:
        print_json(_document(store.uri, state))
    else:
        _print(result_console(), state)
    return 0


def _document(uri: str, state: FolderState) -> JsonValue:
    listed: list[JsonValue] = [
        {**record.dump(), "fileCount": len(record.files), "bytes": _bytes(record)}
        for record in state.snapshots
    ]
    tombstones: list[JsonValue] = [
        {
            "time": format_instant(ended.time),
            "rule": ended.rule,
            "deletedAt": format_instant(ended.deleted_at),
        }
        for ended in state.tombstones
    ]
    return {
        "folder": uri,
        "sequence": state.changed_at,
        "snapshots": listed,
        "tombstones": tombstones,
    }


def _bytes(record: SnapshotRecord) -> int:
    return sum(item.bytes for item in record.files)


def _print(console: Console, state: FolderState) -> None:
    if not state.snapshots:
        console.print("No snapshot is published.")
        return
    table = Table("snapshot", "rows", "files", "bytes", "without", "published", "run", box=None)
    for record in state.snapshots:
        table.add_row(
            format_instant(record.time),
            f"{record.rows:,}",
            str(len(record.files)),
            f"{_bytes(record):,}",
            visible(", ".join(f"{x.field_name} ({x.reason.value})" for x in record.excluded))
            or "-",
            format_instant(record.created_at)[:19] + "Z",
            record.run_id,
        )
    console.print(table)
    for record in state.snapshots:
        if record.replaces is not None:
            why = f": {visible(record.reason)}" if record.reason else ""
            line = f"restated {format_instant(record.time)} (read manifest {record.seq - 1} for the"
            console.print(f"{line} version before){why}", markup=False)
    gone = len(state.tombstoned_times)
    deleted = f", {gone} deleted" if gone else ""
    console.print(f"{len(state.snapshots)} snapshots{deleted}; manifest {state.changed_at}.")
