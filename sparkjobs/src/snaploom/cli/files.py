"""`snaploom files`: exactly the files that are published, for engines that read files by name."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import DEFAULT_PROJECT, Files, Form, ProjectOptions
from snaploom.cli.outputfolders import (
    AtManifest,
    Place,
    chosen_snapshots,
    published_state,
    refuse_both,
)
from snaploom.models.times import format_instant
from snaploom.storage.entries import FileRecord, SnapshotRecord
from snaploom.storage.history import refuse_empty
from snaploom.storage.objectstore import ObjectStore, refuse_links
from snaploom.storage.state import FolderState


def files(
    place: Place,
    /,
    *,
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    at: Annotated[
        str | None, Parameter(help="Of the newest snapshot at this time or before it.")
    ] = None,
    from_: Annotated[
        str | None, Parameter(name="--from", help="Of the snapshots from this time on.")
    ] = None,
    to: Annotated[str | None, Parameter(help="Of the snapshots up to this time.")] = None,
    manifest: AtManifest = None,
    output: Form = OutputForm.TEXT,
) -> int:
    """List the published files, one a line: paths on a local disk, URIs elsewhere.

    An engine that reads these files, and not the folder, sees one version of every snapshot: no
    file of a publication under way, of a snapshot that was deleted, or of a version that was
    replaced. A file stays where it is for the output's `readerGrace` after its snapshot ended.
    """
    refuse_both(at, from_, to)
    store, state = published_state(place, file, manifest, project.choice)
    refuse_empty(state, store.uri)
    records = chosen_snapshots(state, at, from_, to)
    refuse_links(store, [each.path for record in records for each in record.files])
    if output is OutputForm.JSON:
        print_json(_document(store, state, records))
    else:
        base = store.uri.removeprefix("file://")
        paths = [base + each.path for record in records for each in record.files]
        result_console().print("\n".join(paths), markup=False, end="\n" if paths else "")
    return 0


def _document(
    store: ObjectStore, state: FolderState, records: tuple[SnapshotRecord, ...]
) -> JsonValue:
    listed: list[JsonValue] = [
        _file(store, record, each) for record in records for each in record.files
    ]
    return {"folder": store.uri, "sequence": state.changed_at, "files": listed}


def _file(store: ObjectStore, record: SnapshotRecord, file: FileRecord) -> JsonValue:
    return {
        "uri": store.uri + file.path,
        "snapshot": format_instant(record.time),
        "partition": record.partition,
        "bytes": file.bytes,
        "rows": file.rows,
    }
