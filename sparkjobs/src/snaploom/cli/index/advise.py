"""`snaploom index advise`: recommends indexes and sort orders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom import ondemand
from snaploom.cli.console import OutputForm, message_console, show_result
from snaploom.cli.index.buildprogress import IndexProgress
from snaploom.cli.index.indexoptions import (
    DEFAULT_PLACE,
    PlaceOptions,
    Target,
    pairs_of,
    subject_of,
)
from snaploom.cli.options import Form, allowed_by, folder_uri, refuse_request
from snaploom.jobs.indexes.indexrequests import IndexedPlace
from snaploom.jobs.indexes.targets import place_of_resource
from snaploom.jobs.interruption import signal_handlers
from snaploom.localfiles import open_plain
from snaploom.skipping.statements.declaration import StorePlace


def advise(
    target: Target,
    /,
    *,
    query: Annotated[
        tuple[str, ...],
        Parameter(
            name=["--query", "-q"],
            help="SQL, or a condition over the columns; omitted, queries are drawn from the data.",
        ),
    ] = (),
    log: Annotated[
        Path | None,
        Parameter(name="--log", help="File with one such query or condition a line."),
    ] = None,
    files: Annotated[
        int, Parameter(name="--files", help="How many files to read.", show_default=True)
    ] = 64,
    seed: Annotated[
        int, Parameter(name="--seed", help="Of what is drawn at random.", show_default=True)
    ] = 0,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Sample files, and estimate which indexes and sort orders let queries skip most.

    Prints a SkippingIndex that `snaploom index apply` takes. Nothing is written.
    """
    if files < 1:
        raise refuse_request("no file would be read", "--files", str(files), "1 or more")
    queries = (*query, *(() if log is None else _lines(log)))
    named = readable_place(target, place)
    with signal_handlers() as interruption, closing(IndexProgress(message_console())) as progress:
        report = ondemand.advise_files(
            named, queries, files, seed, progress.update, progress.show, interruption
        )
    show_result(report, output)
    return 0


def readable_place(target: str, options: PlaceOptions) -> IndexedPlace:
    """The files that an argument names; where an index of them would be matters little."""
    settings = pairs_of(options.conf, "--conf")
    if options.file:
        declarations = options.project.read(options.file, options.allow)
        return place_of_resource(declarations, target, settings)
    location = folder_uri(options.location).rstrip("/") if options.location else ""
    store = StorePlace(location)
    return IndexedPlace(
        subject_of(target, options), store, settings=settings, allow=allowed_by(options.allow)
    )


def _lines(log: Path) -> Sequence[str]:
    try:
        with open_plain(log) as stream:
            return stream.read().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise refuse_request(
            "the log of queries cannot be read", "--log", found=f"{log}: {error}"
        ) from error
