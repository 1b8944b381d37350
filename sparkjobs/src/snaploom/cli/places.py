"""Published outputs as commands name them: by declaration, or by folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.options import folder_uri, open_named
from snaploom.jobs.declarations.files import read_declarations
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.storage.folder import is_unused, open_folder
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.state import EMPTY, FolderState

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
    place: str, files: Sequence[Path] | None, manifest: int | None = None
) -> tuple[ObjectStore, FolderState]:
    """What is published by an output, or in a folder.

    Args:
        place: name of an output that `files` declare, or a folder.
        files: declarations; none when `place` is a folder.
        manifest: sequence number to look at; omitted, the newest.

    Raises:
        InvalidDeclarations: there is no such output, or this cannot be a folder.
        FolderNotOurs: it is not the folder of an output.
        ObjectNotFound: there is no such entry.
    """
    if files:
        spec = read_declarations(list(files)).bundle(place).output.spec
        store = open_named(spec.output_folder.folder_uri)
        # An output that never ran has no folder yet, which is no fault.
        return store, EMPTY if is_unused(store) else open_folder(store).log.read(manifest)
    store = open_named(_folder(place))
    return store, open_folder(store).log.read(manifest)


def _folder(place: str) -> str:
    uri = folder_uri(place)
    if "/" in uri or ":" in uri:
        return uri
    raise InvalidDeclarations(
        [
            make_finding(
                "SL191",
                "there is no folder of this name here",
                path=PLACE,
                found=place,
                expected="the name of an OutputDataset with `-f`, or the URI or path of a folder",
                hint=f"for an output, add where it is declared: {place} -f PATH",
            )
        ]
    )
