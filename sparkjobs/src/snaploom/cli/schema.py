"""`snaploom schema`: the schema of published rows, and JSON Schemas for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import DEFAULT_PROJECT, Files, Form, ProjectOptions, writing_to
from snaploom.cli.outputfolders import (
    PLACE,
    AtManifest,
    chosen_snapshots,
    published_state,
    refuse_both,
)
from snaploom.models.editor import schema_text, write_schemas
from snaploom.planning import schemas, schematree
from snaploom.storage import history


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
    file: Files | None = None,
    project: ProjectOptions = DEFAULT_PROJECT,
    at: Annotated[
        str | None, Parameter(help="Of the newest snapshot at this time or before it.")
    ] = None,
    from_: Annotated[
        str | None, Parameter(name="--from", help="Merged over the snapshots from this time on.")
    ] = None,
    to: Annotated[str | None, Parameter(help="Merged over the snapshots up to this time.")] = None,
    manifest: AtManifest = None,
    output: Form = OutputForm.TEXT,
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
        store, state = published_state(place, file, manifest, project.choice)
        settings = history.refuse_empty(state, store.uri)
        records = chosen_snapshots(state, at, from_, to)
        documents = history.SchemaDocuments(store)
        merged = history.merged_schema(state, documents, records)
        found = schemas.parse_schema(history.with_partition(merged, settings), "")
        if output is OutputForm.JSON:
            print_json(schemas.schema_document(found))
        else:
            console.print(schematree.schema_text(found), markup=False, end="")
        return 0
    if folder is None:
        console.print(schema_text(), markup=False, end="")
        return 0
    with writing_to(folder):
        written = write_schemas(folder)
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return 0
