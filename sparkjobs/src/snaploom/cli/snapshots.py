"""`snaploom snapshots`: what an output has published, from its manifest, without Spark."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import Files, Form, folder_uri
from snaploom.jobs.declarations import read_declarations
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.times import format_instant
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.folder import is_unused, open_folder
from snaploom.storage.state import EMPTY, FolderState
from snaploom.storage.stores import open_store


def snapshots(
    place: Annotated[
        str,
        Parameter(
            name="OUTPUT_OR_FOLDER",
            help="Name of an OutputDataset (with `-f`), or URI or absolute path of its folder.",
        ),
    ],
    /,
    *,
    file: Files | None = None,
    manifest: Annotated[
        int | None, Parameter(help="Sequence number to look at; omitted, the newest.")
    ] = None,
    output: Form = OutputForm.TEXT,
) -> int:
    """List the published snapshots of an output."""
    if file:
        spec = read_declarations(file).bundle(place).output.spec
        store = open_store(spec.output_folder.folder_uri, create=False)
        # An output that never ran has no folder yet, which is no fault.
        state = EMPTY if is_unused(store) else open_folder(store).log.read(manifest)
    else:
        store = open_store(_folder(place), create=False)
        state = open_folder(store).log.read(manifest)
    if output is OutputForm.JSON:
        print_json(_document(store.uri, state))
    else:
        _print(result_console(), state)
    return 0


def _folder(place: str) -> str:
    uri = folder_uri(place)
    if "/" in uri or ":" in uri:
        return uri
    raise InvalidDeclarations(
        [
            make_finding(
                "SL191",
                "there is no folder of this name here",
                path="OUTPUT_OR_FOLDER",
                found=place,
                expected="the name of an OutputDataset with `-f`, or the URI or path of a folder",
                hint=f"for an output, add where it is declared: snaploom snapshots {place} -f PATH",
            )
        ]
    )


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
        "sequence": state.seq,
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
            ", ".join(item.field_name for item in record.excluded) or "-",
            format_instant(record.created_at)[:19] + "Z",
            record.run_id,
        )
    console.print(table)
    gone = len(state.tombstoned_times)
    deleted = f", {gone} deleted" if gone else ""
    console.print(f"{len(state.snapshots)} snapshots{deleted}; manifest {state.seq}.")
