"""`snaploom snapshots`, `files` and `schema`: what an output has published."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from snaploom.cli import options
from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.confidential import visible
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.models.allowances import NO_CHOICE, VariableChoice
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.schemas import schema_text, write_schemas
from snaploom.output import history
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.history import refuse_empty
from snaploom.output.state import EMPTY, FolderState
from snaploom.output.versions import known_state, refuse_removed
from snaploom.run.folders import folder_of, open_named
from snaploom.types import schemas

# Finds published outputs that commands name by declaration or by folder.

_TIME_HINT = "leave it out for all snapshots"
PLACE = "OUTPUT_OR_FOLDER"
"""Name of the argument in usage and messages."""

Place = Annotated[
    str,
    Parameter(
        name=PLACE,
        help="Name of an OutputDataset (with `-f`), or URI or absolute path of its folder.",
    ),
]
At = Annotated[str | None, Parameter(help="Of the newest snapshot at this time or before it.")]
From = Annotated[str | None, Parameter(name="--from", help="Of the snapshots from this time on.")]
To = Annotated[str | None, Parameter(help="Of the snapshots up to this time.")]
AtManifest = Annotated[
    int | None, Parameter(help="Sequence number of the manifest; omitted, the newest.")
]
KnownAt = Annotated[
    str | None,
    Parameter(
        help="As it was published at this time, whatever was published, replaced or deleted since."
    ),
]


def published_state(
    place: str,
    files: Sequence[Path] | None,
    manifest: int | None = None,
    choice: VariableChoice = NO_CHOICE,
) -> tuple[ObjectStore, FolderState]:
    """The published state of an output that `files` declare, or without them of a folder.

    Raises:
        FolderNotOurs: it is not the folder of an output.
        ObjectNotFound: there is no entry of the number `manifest`.
    """
    if files:
        store = open_named(folder_of(place, list(files), choice))
        # An output that never ran has no folder yet, which is no fault.
        return store, EMPTY if is_unused(store) else open_folder(store).log.read(manifest)
    store = open_named(folder_named(place))
    return store, open_folder(store).log.read(manifest)


def _known_moment(known_at: str | None, manifest: int | None) -> EpochNanos | None:
    """The instant of `--known-at`; None without it."""
    if known_at is None:
        return None
    if manifest is not None:
        raise options.refuse_request(
            "the past is asked for twice",
            "--known-at",
            found=f"--known-at {known_at} with --manifest {manifest}",
            expected="either a number or a time of what was published",
            hint="leave out one of the two",
        )
    return options.time_of(known_at, "--known-at", "leave it out for what is published now")


def _known(uri: str, newest: FolderState, moment: EpochNanos | None) -> FolderState:
    return newest if moment is None else known_state(newest, moment, uri)


def chosen_snapshots(
    state: FolderState, at: str | None, from_: str | None, to: str | None
) -> tuple[SnapshotRecord, ...]:
    """The snapshots that `--at`, or `--from` and `--to`, choose; all without them.

    Raises:
        NothingPublished: there is none.
    """
    if at is not None:
        return (history.snapshot_at(state, options.time_of(at, "--at", _TIME_HINT)),)
    first = None if from_ is None else options.time_of(from_, "--from", _TIME_HINT)
    last = None if to is None else options.time_of(to, "--to", _TIME_HINT)
    if first is not None and last is not None and last < first:
        raise options.refuse_request(
            "this range ends before it begins",
            "--from",
            found=f"from {from_} to {to}",
            expected="the earlier time in --from; both ends are inclusive",
            hint="exchange the two",
        )
    found = tuple(map(state.records.live, history.versions_between(state, first, last)))
    if not found:
        raise history.NothingPublished("there is no snapshot in this range")
    return found


def refuse_both(at: str | None, from_: str | None, to: str | None) -> None:
    """Refuse a snapshot together with a range."""
    if at is not None and (from_ is not None or to is not None):
        raise options.refuse_request(
            "a snapshot and a range are asked for at once",
            "--at",
            found="--at with --from or --to",
            expected="one of the two",
            hint="leave out --at, or --from and --to",
        )


def folder_named(place: str) -> str:
    """The URI of a folder that is given by URI or path."""
    uri = options.folder_uri(place)
    if "/" in uri or ":" in uri:
        return uri
    raise options.refuse_request(
        "there is no folder of this name here",
        PLACE,
        found=place or options.EMPTY_TEXT,
        expected="the name of an OutputDataset with `-f`, or the URI or path of a folder",
        hint=f"for an output, add where it is declared: {place or 'NAME'} -f PATH",
    )


# `snaploom snapshots`: what an output has published, from its manifest, without Spark.


def snapshots(
    place: Place,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    manifest: AtManifest = None,
    known_at: KnownAt = None,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """List the published snapshots of an output."""
    store, newest = published_state(place, file, manifest, project.choice)
    state = _known(store.uri, newest, _known_moment(known_at, manifest))
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


# `snaploom files`: exactly the files that are published, for engines that read files by name.


def files(
    place: Place,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    at: At = None,
    from_: From = None,
    to: To = None,
    manifest: AtManifest = None,
    known_at: KnownAt = None,
    output: options.Form = OutputForm.TEXT,
) -> int:
    """List the published files, one a line: paths on a local disk, URIs elsewhere.

    An engine that reads these files, and not the folder, sees one version of every snapshot: no
    file of a publication under way, of a snapshot that was deleted, or of a version that was
    replaced. A file stays where it is for the output's `readerGrace` after its snapshot ended.
    """
    refuse_both(at, from_, to)
    store, newest = published_state(place, file, manifest, project.choice)
    moment = _known_moment(known_at, manifest)
    state = _known(store.uri, newest, moment)
    refuse_empty(state, store.uri)
    records = chosen_snapshots(state, at, from_, to)
    if moment is not None:
        refuse_removed(store, newest, moment, lambda known: chosen_snapshots(known, at, from_, to))
    refuse_links(store, [each.path for record in records for each in record.files])
    if output is OutputForm.JSON:
        listed: list[JsonValue] = [
            {
                "uri": store.uri + each.path,
                "snapshot": format_instant(record.time),
                "partition": record.partition,
                "bytes": each.bytes,
                "rows": each.rows,
            }
            for record in records
            for each in record.files
        ]
        print_json({"folder": store.uri, "sequence": state.changed_at, "files": listed})
    else:
        base = store.uri.removeprefix("file://")
        paths = [base + each.path for record in records for each in record.files]
        result_console().print("\n".join(paths), markup=False, end="\n" if paths else "")
    return 0


# `snaploom schema`: the schema of published rows, and JSON Schemas for editors.


def schema(
    place: Annotated[
        str | None,
        Parameter(
            name=PLACE,
            help="Name of an OutputDataset (with `-f`), or URI or absolute path of its folder; "
            "omitted, the JSON Schemas of all kinds.",
        ),
    ] = None,
    /,
    *,
    file: options.Files | None = None,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
    at: At = None,
    from_: From = None,
    to: To = None,
    manifest: AtManifest = None,
    known_at: KnownAt = None,
    output: options.Form = OutputForm.TEXT,
    folder: Annotated[
        Path | None, Parameter(name="--dir", help="Where to write JSON Schemas.")
    ] = None,
) -> int:
    """Print the schema of what an output has published, or the JSON Schemas of all kinds.

    The schema is that of one snapshot (`--at`), or the one that reads all snapshots, or those of a
    range. Snapshots that cannot be read together are an error that names both sides.
    """
    console = result_console()
    if place is not None:
        refuse_both(at, from_, to)
        store, newest = published_state(place, file, manifest, project.choice)
        state = _known(store.uri, newest, _known_moment(known_at, manifest))
        settings = history.refuse_empty(state, store.uri)
        records = chosen_snapshots(state, at, from_, to)
        documents = history.SchemaDocuments(store)
        merged = history.merged_schema(state, documents, records)
        found = schemas.parse_schema(history.with_partition(merged, settings), "")
        if output is OutputForm.JSON:
            print_json(schemas.schema_document(found))
        else:
            console.print(schemas.schema_text(found), markup=False, end="")
        return 0
    if folder is None:
        console.print(schema_text(), markup=False, end="")
        return 0
    with options.writing_to(folder):
        written = write_schemas(folder)
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return 0
