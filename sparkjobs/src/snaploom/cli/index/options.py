"""Options of the commands about skipping indexes, and their progress."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from snaploom import ondemand
from snaploom.cli.console import message_console, print_findings
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    ProjectOptions,
    allowed_by,
    folder_uri,
    refuse_request,
)
from snaploom.errors import Interrupted, StatementInvalid
from snaploom.models.findings import Finding, InvalidDeclarations, make_finding, refuse
from snaploom.models.skippingindex import Index
from snaploom.run.declarations import Declarations
from snaploom.run.folders import by_hadoop
from snaploom.run.indexes import indexrequests
from snaploom.run.runevents import signal_handlers
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.formats.parquetfiles import open_keys
from snaploom.skipping.indexes.base import registered_types
from snaploom.skipping.statements import syntax
from snaploom.skipping.stores.catalog import LOCATIONS, IndexBase, locations_in, open_base

# Progress of building an index, on standard error.

_PARTS = 4


class IndexProgress:
    """Shows files done; `update` may be called from any thread, the rest from the main thread."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._updates: SimpleQueue[tuple[str, int, int]] = SimpleQueue()
        self._tasks: dict[str, TaskID] = {}
        self._parts: dict[str, int] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed} of {task.total} files", style="dim"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def update(self, label: str, done: int, files: int) -> None:
        self._updates.put((label, done, files))

    def show(self) -> None:
        """Show the updates since the last call."""
        while not self._updates.empty():
            label, done, files = self._updates.get()
            if self._console.is_terminal:
                if label not in self._tasks:
                    self._tasks[label] = self._progress.add_task(label, total=files)
                    self._progress.start()
                self._progress.update(self._tasks[label], completed=done, total=files)
            else:
                part = _PARTS * done // files if files else _PARTS
                if part > self._parts.get(label, 0):
                    self._parts[label] = part
                    self._console.print(f"{label}: {done} of {files} files read", markup=False)

    def close(self) -> None:
        """Show the rest, and leave the terminal as it was."""
        self.show()
        self._progress.stop()


# Runs index commands with progress and interruption.


def carry_out(
    requests: Sequence[indexrequests.IndexRequest],
) -> tuple[indexrequests.IndexReport, ...]:
    """Carry out requests in one Spark session."""
    with signal_handlers() as interruption, closing(IndexProgress(message_console())) as progress:
        return ondemand.carry_out(requests, progress.update, progress.show, interruption)


@contextmanager
def put_back_when_interrupted(label: str) -> Iterator[None]:
    """Report Ctrl-C or SIGTERM as `Interrupted`, for operations that undo themselves."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"{label}: interrupted",
            found="an operation that was stopped and put back",
            hint="queries use what was there before; run the command again",
        ) from error


# Finds the targets and stores of declared SkippingIndexes.


def declared_places(
    declarations: Declarations, names: Sequence[str], settings: syntax.Properties = ()
) -> tuple[indexrequests.IndexedPlace, ...]:
    """The target and store of every named index; of all without names."""
    places: list[indexrequests.IndexedPlace] = []
    findings: list[Finding] = [] if names else list(declarations.findings)
    for name in dict.fromkeys(names or indexrequests.index_names(declarations)):
        try:
            places.append(indexrequests.place_of_resource(declarations, name, settings))
        except InvalidDeclarations as error:
            findings.extend(finding for finding in error.findings if finding not in findings)
    refuse(findings)
    print_findings(findings, message_console())
    if not places:
        raise refuse_request(
            "these files declare no SkippingIndex",
            "INDEX",
            found="none",
            expected="at least one SkippingIndex",
        )
    return tuple(places)


# Options that the commands about skipping indexes share.

Target = Annotated[
    str,
    Parameter(
        name="TARGET",
        help="A table, the URI or absolute path of files, or (with `-f`) a SkippingIndex.",
    ),
]
Items = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--index", "-i"],
        help="Index to keep, as in SQL: `'price MIN_MAX'`, `'lower(name) VALUE_SET(50)'`.",
    ),
]
Conf = Annotated[
    tuple[str, ...],
    Parameter(name="--conf", help="Setting of the Spark session, as `name=value`."),
]
Kms = Annotated[
    str | None,
    Parameter(
        name="--kms",
        help="Key management service of encrypted indexes; the same as "
        f"`--conf {KEY_SERVICE}=URL`.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class PlaceOptions:
    """Format of the files, location of the index, and the declarations of both."""

    file: Files | None = None
    project: ProjectOptions = DEFAULT_PROJECT
    format: Annotated[
        str, Parameter(name="--format", help="Format of the files.", show_default=True)
    ] = "parquet"
    option: Annotated[
        tuple[str, ...],
        Parameter(name="--option", help="Option of Spark's reader, as `name=value`."),
    ] = ()
    location: Annotated[
        str | None,
        Parameter(
            name="--location",
            help="Folder below which indexes are kept; omitted, the one of "
            "`--conf spark.snaploom.skipping.locations=...`.",
        ),
    ] = None
    conf: Conf = ()
    kms: Kms = None
    allow: Allow = ()


DEFAULT_PLACE = PlaceOptions()


def place_of(target: str, options: PlaceOptions) -> indexrequests.IndexedPlace:
    """The indexed files, and the place of their index."""
    settings = settings_of(options.conf, options.kms)
    if options.file:
        declarations = options.project.read(options.file, options.allow)
        return indexrequests.place_of_resource(declarations, target, settings)
    given = (options.location or "").strip()
    location = given or next(iter(locations_in(dict(settings).get(LOCATIONS))), "")
    if not location:
        raise refuse_request(
            "no index location is given",
            "--location",
            expected="the URI or path of a folder",
            hint="add --location FOLDER, or -f FILES for a declared index",
        )
    store = syntax.StorePlace(folder_uri(location).rstrip("/"))
    allow = allowed_by(options.allow)
    return indexrequests.IndexedPlace(
        subject_of(target, options), store, settings=settings, allow=allow
    )


def base_of(location: str, settings: syntax.Properties = ()) -> IndexBase:
    """The place of indexes that exist; keys come from the service that settings name."""
    keys = open_keys(dict(settings).get(KEY_SERVICE, ""))
    return open_base(location_uri(location), keys, by_hadoop)


def location_uri(location: str) -> str:
    """The URI of a place of indexes that exist."""
    uri = folder_uri(location) if location.strip() else ""
    path = _local_path(uri)
    if not uri or (path is not None and not os.path.isdir(path)):
        what = "not there" if path is None or not os.path.exists(path) else "a file"
        raise refuse_request(
            "there is no such location of indexes",
            "LOCATION",
            found=f"{location}, which is {what}" if uri else "an empty text",
            expected="the folder that --location named when an index was created",
            hint="look for the folder that has folders with long names of digits and letters in it",
        )
    return uri


def _local_path(uri: str) -> Path | None:
    if uri.startswith("/"):
        return Path(uri)
    rest = uri.removeprefix("file:")
    return Path(rest) if rest != uri and rest.startswith("/") else None


def subject_of(target: str, options: PlaceOptions) -> syntax.Subject:
    """The table or the files that an argument names."""
    if not target.strip():
        raise refuse_request(
            "no target is given",
            "TARGET",
            found="an empty text",
            expected="a table, or the URI or path of files",
            hint="look at the variable that it may have come from",
        )
    uri = folder_uri(target)
    if "/" in uri or ":" in uri:
        path = uri if uri == "/" else uri.rstrip("/")
        return syntax.PathName(options.format, path, pairs_of(options.option, "--option"))
    if options.option:
        raise refuse_request(
            "options of the reader belong to files, not to tables",
            "--option",
            found=f"{target}, which has no / and is a table",
            expected="the URI or path of files",
        )
    return syntax.parse_subject(target)


def indexes_of(items: Iterable[str]) -> tuple[Index, ...]:
    """The indexes that texts of `--index` declare."""
    indexes: list[Index] = []
    findings = []
    for item in items:
        try:
            indexes.extend(syntax.parse_indexes(item, registered_types()))
        except StatementInvalid as error:
            findings.append(
                make_finding(
                    "SL191",
                    error.message,
                    path="--index",
                    found=error.found or "",
                    expected=error.expected or "",
                    hint=error.hint or "",
                )
            )
    if findings:
        raise InvalidDeclarations(findings)
    return tuple(indexes)


def pairs_of(texts: Iterable[str], option: str) -> tuple[tuple[str, str], ...]:
    """Names and values, in order of names."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise refuse_request(f"this is not an {option}", option, text, "name=value")
        if name in pairs:
            raise refuse_request(f"{name} is given twice", option, text, "every name once")
        pairs[name] = value
    return tuple(sorted(pairs.items()))


def settings_of(conf: Iterable[str], kms: str | None) -> tuple[tuple[str, str], ...]:
    """Settings of the session, from `--conf` and `--kms`."""
    return pairs_of([*conf, *([f"{KEY_SERVICE}={kms}"] if kms else [])], "--conf")
