"""`snaploom index advise` and `sort`: recommended orders of rows, and sorting."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm, message_console, show_result, warn
from snaploom.cli.index.options import (
    DEFAULT_PLACE,
    IndexProgress,
    PlaceOptions,
    Target,
    pairs_of,
    subject_of,
)
from snaploom.cli.options import Form, allowed_by, folder_uri, refuse_request, time_of
from snaploom.errors import SnapshotChanged
from snaploom.localfiles import open_plain
from snaploom.plugins import advice
from snaploom.plugins.advice.requests import PublishedPlace, place_of_folder, place_of_output
from snaploom.run.folders import open_named
from snaploom.run.indexes.indexrequests import IndexedPlace, place_of_resource
from snaploom.run.runevents import signal_handlers
from snaploom.skipping.core.valueorder import TARGET_FILE_SIZE, Curve, SortRequest
from snaploom.skipping.statements.syntax import StorePlace

# `snaploom index advise`: recommends indexes and sort orders.


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
        Parameter(name="--log", help="File with a query or condition on each line."),
    ] = None,
    files: Annotated[
        int, Parameter(name="--files", help="Number of files to read.", show_default=True)
    ] = 64,
    seed: Annotated[
        int, Parameter(name="--seed", help="Seed of random choices.", show_default=True)
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
        report = advice.advise_files(
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


# `snaploom index sort`: sorts rows so that queries skip more files.

_MEBIBYTE = 1 << 20
_ACKNOWLEDGE = "--acknowledge-readers"
_TIMES_HINT = "'snaploom snapshots' lists the times"


def sort(
    target: Annotated[
        str,
        Parameter(
            name="TARGET",
            help="A table, the URI or absolute path of files or of an output's folder, or (with "
            "`-f`) an OutputDataset or SkippingIndex.",
        ),
    ],
    into: Annotated[
        str | None,
        Parameter(
            name="INTO",
            help="The new folder, which is absent or empty; left out for published snapshots, "
            "which are replaced.",
        ),
    ] = None,
    /,
    *,
    by: Annotated[
        tuple[str, ...],
        Parameter(name="--by", help="Column to sort by, the most important first."),
    ],
    curve: Annotated[
        Curve,
        Parameter(
            name="--curve",
            help="LINEAR helps the first column only, the others all columns.",
            show_default=True,
        ),
    ] = Curve.HILBERT,
    file_size: Annotated[
        int, Parameter(name="--file-size", help="Approximate MiB of a file.", show_default=True)
    ] = TARGET_FILE_SIZE // _MEBIBYTE,
    snapshot: Annotated[
        tuple[str, ...],
        Parameter(
            name="--snapshot",
            help="Time of a published snapshot to sort; omitted, every live one.",
        ),
    ] = (),
    acknowledge_readers: Annotated[
        bool,
        Parameter(
            name=_ACKNOWLEDGE,
            negative="",
            help="Replace published snapshots, although readers that list folders see both "
            "versions until `gc` has removed the old one.",
        ),
    ] = False,
    place: PlaceOptions = DEFAULT_PLACE,
    output: Form = OutputForm.TEXT,
) -> int:
    """Write the same rows in another order: into a new folder, or in place of published snapshots.

    The rows are read back and compared before the folder appears, or the snapshot is replaced.
    Files of others stay as they are; each published snapshot is replaced in one step, and those who
    read by the manifest see one version or the other, and always whole.
    """
    if file_size < 1:
        raise refuse_request("files cannot be so small", "--file-size", str(file_size), "1 or more")
    request = SortRequest(by, curve, file_size * _MEBIBYTE)
    if into is None:
        return _replace(_published(target, place), request, snapshot, acknowledge_readers, output)
    if snapshot or acknowledge_readers:
        raise refuse_request(
            "only published snapshots are replaced",
            "--snapshot" if snapshot else _ACKNOWLEDGE,
            found=f"the new folder {into}",
            expected="either a new folder, or snapshots to replace",
        )
    with signal_handlers() as interruption:
        result = advice.sort_files(
            readable_place(target, place), folder_uri(into), request, lambda: None, interruption
        )
    show_result(result, output)
    return 0


def _replace(
    place: PublishedPlace,
    request: SortRequest,
    snapshots: tuple[str, ...],
    is_acknowledged: bool,
    output: OutputForm,
) -> int:
    times = [time_of(text, "--snapshot", _TIMES_HINT) for text in snapshots]
    if not is_acknowledged:
        raise refuse_request(
            "readers that list folders would see the rows of a snapshot twice",
            _ACKNOWLEDGE,
            expected="readers that read by the manifest (snaploom.read), or that can wait",
            hint="the old files stay for those who are reading them, until readerGrace has passed "
            f"and 'snaploom gc' removes them; add {_ACKNOWLEDGE} if everybody knows",
        )
    with signal_handlers() as interruption, closing(IndexProgress(message_console())) as progress:
        result = advice.sort_snapshots(
            place, request, times, progress.update, progress.show, interruption
        )
    show_result(result, output)
    return 0 if result.is_complete else SnapshotChanged.exit_code


def _published(target: str, options: PlaceOptions) -> PublishedPlace:
    """The output that an argument names."""
    settings = pairs_of(options.conf, "--conf")
    if options.file:
        declarations = options.project.read(options.file, options.allow)
        found = place_of_output(declarations, target, settings, warn)
    else:
        found = place_of_folder(folder_uri(target), settings, open_named)
    if found is None:
        raise refuse_request(
            "only snapshots that Snaploom published are sorted where they are",
            "INTO",
            found=target,
            expected="a new folder for the sorted files",
            hint="name one after the target; the files of others are never rewritten in place",
        )
    return found
