"""`snaploom index export` and `import`: Xskipper metadata stores."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.index.execution import carry_out, put_back_when_interrupted
from snaploom.cli.index.indexoptions import DEFAULT_PLACE, PlaceOptions, Target, place_of
from snaploom.cli.index.rendering import show_reports
from snaploom.cli.options import Form, folder_uri
from snaploom.jobs.indexes.indexrequests import IndexAction, IndexReport, IndexRequest
from snaploom.jobs.indexes.lookup import find_index, keys_of
from snaploom.jobs.namedfolders import by_hadoop
from snaploom.skipping.lifecycle.description import describe
from snaploom.skipping.lifecycle.interchange import interchange
from snaploom.storage.stores import open_store

Directory = Annotated[
    str,
    Parameter(name="DIRECTORY", help="URI or absolute path of the folder of the metadata store."),
]


def export(
    target: Target,
    directory: Directory,
    /,
    *,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Export an index as an Xskipper metadata store, version 4; the index stays as it is."""
    named = place_of(target, place)
    store = find_index(named, by_hadoop)
    folder = open_store(folder_uri(directory), create=True, others=by_hadoop)
    with put_back_when_interrupted(named.label):
        written = interchange().export(store, folder, keys_of(named))
    left = f"; {written.left_out} have none there" if written.left_out else ""
    done = f"exported rows about {written.rows} files to {folder.uri}{left}"
    show_reports([IndexReport(named.label, (done,), describe(store))], output)
    return 0


def import_(
    target: Target,
    directory: Annotated[
        str | None,
        Parameter(
            name="DIRECTORY",
            help="Folder of the metadata store, or the one with those of many tables; omitted, "
            "the one that properties of the table or its database name.",
        ),
    ] = None,
    /,
    *,
    trust: Annotated[
        bool,
        Parameter(
            name="--trust",
            negative="",
            help="Believe the values of rows about files that are there as they were, by path and "
            "time of modification; omitted, each row is compared with its file, too.",
        ),
    ] = False,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Import an Xskipper metadata store of version 0 to 4 as a skipping index."""
    request = IndexRequest(
        IndexAction.IMPORT,
        place_of(target, place),
        directory="" if directory is None else folder_uri(directory),
        is_trusted=trust,
    )
    show_reports(carry_out([request]), output)
    return 0
