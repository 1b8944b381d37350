"""Every way into an output folder that needs no Spark, to be tried on one that an enemy wrote."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.hostile.goodfolder import SCHEMA, parquet
from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees, now

from snaploom import reader
from snaploom.cli.main import run_command
from snaploom.errors import SnaploomError
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output.caches import Listings
from snaploom.output.folder import FolderOwner, inspect_folder, open_folder, prepare_folder
from snaploom.output.gc import sweep
from snaploom.output.history import SchemaDocuments, store_merged_schema
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.publication import WriteResult, publish
from snaploom.output.removal import remove_folder
from snaploom.run.declarations import read_declarations
from snaploom.run.runevents import estimate_of
from snaploom.run.weaving.history import delete_old_snapshots
from snaploom.run.weaving.preflight import published_state

_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]|^forged line", re.MULTILINE)
"""What no message may hold, and a line that none of ours begins with."""


@dataclass(frozen=True)
class Place:
    """A hostile folder, and declarations of the output that it claims to be of."""

    folder: Path
    declarations: Path


Operation = Callable[[Place], object]


class Broken(AssertionError):
    """An operation that an enemy's folder broke."""


def command(*arguments: str) -> None:
    """Run a command line in this process; whatever it prints is for people."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command(arguments)
    printed = out.getvalue() + err.getvalue()
    if code not in (0, 1, 2) or "internal error" in printed or "Traceback" in printed:
        raise Broken(f"{arguments[0]} ended with {code}: {printed[-2000:]}")
    if found := _RAW.search(printed):
        raise Broken(f"{arguments[0]} printed {found[0]!r}: {printed[-2000:]!r}")


def begin_run(place: Place) -> None:
    """What a run does with its folder before, during and after weaving; nothing is woven."""
    store = open_store(str(place.folder), create=True)
    inspect_folder(store, SETTINGS, IDENTITY)
    run = a_run(start=now())
    folder = prepare_folder(store, SETTINGS, IDENTITY, run)
    state = folder.read()
    published_state(store, state)
    estimate_of(state, 3)
    Listings(store, EpochNanos(now())).of("customer", "about")
    lease = ClaimLease(folder, run)
    held = lease.swap(Swap(lease.read(), run.run_id, 60))
    if held is not None:
        lease.swap(Swap(held, run.run_id, 60))

    def write(uri: str) -> WriteResult:
        folder.store.put(f"{uri.removeprefix(store.uri)}part-0.parquet", parquet())
        return WriteResult(rows=3, schema=SCHEMA)

    publish(folder, run, a_target(9), write, agrees, leftover_grace=0)
    store_merged_schema(store, folder.read(), SchemaDocuments(store))


def retain(place: Place) -> None:
    """Deletion by retention, and removal of what ended."""
    output = read_declarations([place.declarations]).bundle(IDENTITY.output).output
    folder = open_folder(open_store(str(place.folder), create=False))
    run = a_run(start=now())
    delete_old_snapshots(folder, run, output, now())
    sweep(folder, run, now(), silence=0)


def remove(place: Place) -> None:
    """Deletion of the output."""
    store = open_store(str(place.folder), create=False)
    remove_folder(store, FolderOwner(IDENTITY.output, "", ""), a_run(start=now()))


LOOKING: Mapping[str, Operation] = {
    "snapshots": lambda place: command("snapshots", str(place.folder)),
    "files": lambda place: command("files", str(place.folder)),
    "snapshots -o json": lambda place: command("snapshots", str(place.folder), "-o", "json"),
    "gc --dry-run": lambda place: command("gc", str(place.folder), "--dry-run"),
    "check": lambda place: command("check", str(place.folder), "--files-only"),
    "check -o json": lambda place: command(
        "check", str(place.folder), "--files-only", "-o", "json"
    ),
    "diff": lambda place: command("diff", IDENTITY.output, "-f", str(place.declarations)),
    "repair": lambda place: command("repair", IDENTITY.output, "-f", str(place.declarations)),
    "schema": lambda place: reader.schema(str(place.folder)),
    "absences": lambda place: reader.absences(str(place.folder)),
}
"""Operations that change nothing."""

CHANGING: Mapping[str, Operation] = {
    "run": begin_run,
    "retention": retain,
    "gc": lambda place: command("gc", str(place.folder), "--grace", "0s", "--below-reader-grace"),
    "repair --yes": lambda place: command(
        "repair", IDENTITY.output, "-f", str(place.declarations), "--yes"
    ),
    "delete": remove,
}
"""Operations that write or remove."""


def enter(operation: Operation, place: Place) -> None:
    """Try an operation; it succeeds, or reports in one error of ours why not.

    Raises:
        Broken: it did something else.
    """
    try:
        operation(place)
    except SnaploomError as error:
        if found := _RAW.search(str(error)):
            raise Broken(f"{found[0]!r} in {str(error)!r}") from error
