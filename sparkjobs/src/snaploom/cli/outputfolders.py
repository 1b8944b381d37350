"""Finds published outputs that commands name by declaration or by folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.options import EMPTY_TEXT, folder_uri, refuse_request, time_of
from snaploom.jobs.namedfolders import folder_of, open_named
from snaploom.models.projectfile import NO_CHOICE, VariableChoice
from snaploom.storage import history
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.folder import is_unused, open_folder
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.state import EMPTY, FolderState

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
AtManifest = Annotated[
    int | None, Parameter(help="Sequence number to look at; omitted, the newest.")
]


def published_state(
    place: str,
    files: Sequence[Path] | None,
    manifest: int | None = None,
    choice: VariableChoice = NO_CHOICE,
) -> tuple[ObjectStore, FolderState]:
    """The published state of an output, or of a folder.

    Args:
        place: name of an output that `files` declare, or a folder.
        files: declarations; none when `place` is a folder.
        manifest: sequence number to look at; omitted, the newest.
        choice: environment and variables of the declarations.

    Raises:
        InvalidDeclarations: there is no such output, or this cannot be a folder.
        FolderNotOurs: it is not the folder of an output.
        ObjectNotFound: there is no such entry.
    """
    if files:
        store = open_named(folder_of(place, list(files), choice))
        # An output that never ran has no folder yet, which is no fault.
        return store, EMPTY if is_unused(store) else open_folder(store).log.read(manifest)
    store = open_named(folder_named(place))
    return store, open_folder(store).log.read(manifest)


def chosen_snapshots(
    state: FolderState, at: str | None, from_: str | None, to: str | None
) -> tuple[SnapshotRecord, ...]:
    """The snapshots that `--at`, or `--from` and `--to`, choose; all without them.

    Raises:
        NothingPublished: there is none.
        InvalidDeclarations: one of them is no time.
    """
    if at is not None:
        return (history.snapshot_at(state, time_of(at, "--at", _TIME_HINT)),)
    first = None if from_ is None else time_of(from_, "--from", _TIME_HINT)
    last = None if to is None else time_of(to, "--to", _TIME_HINT)
    if first is not None and last is not None and last < first:
        raise refuse_request(
            "this range ends before it begins",
            "--from",
            found=f"from {from_} to {to}",
            expected="the earlier time in --from; both ends are inclusive",
            hint="exchange the two",
        )
    found = history.snapshots_between(state, first, last)
    if not found:
        raise history.NothingPublished(
            "there is no snapshot in this range", hint="'snaploom snapshots' lists those there are"
        )
    return found


def refuse_both(at: str | None, from_: str | None, to: str | None) -> None:
    """Refuse a snapshot together with a range.

    Raises:
        InvalidDeclarations: both are asked for.
    """
    if at is not None and (from_ is not None or to is not None):
        raise refuse_request(
            "a snapshot and a range are asked for at once",
            "--at",
            found="--at with --from or --to",
            expected="one of the two",
            hint="leave out --at, or --from and --to",
        )


def folder_named(place: str) -> str:
    """The URI of a folder that is given by URI or path.

    Raises:
        InvalidDeclarations: it cannot be a folder.
    """
    uri = folder_uri(place)
    if "/" in uri or ":" in uri:
        return uri
    raise refuse_request(
        "there is no folder of this name here",
        PLACE,
        found=place or EMPTY_TEXT,
        expected="the name of an OutputDataset with `-f`, or the URI or path of a folder",
        hint=f"for an output, add where it is declared: {place or 'NAME'} -f PATH",
    )
